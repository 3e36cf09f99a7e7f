// How processes of an instance end: killed, hung, stopped alone or all together. Nothing acknowledged is lost, and nothing is left behind.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { closeSync, openSync, readFileSync, statSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, it } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { until as untilWithin } from '../assurance/harness/until.ts'
import { childrenOf, isRunning } from '../assurance/harness/process-tree.ts'
import { MAIN } from '../assurance/harness/instance.ts'
import { Folder, makeKey, type RunOptions, type Served, serve } from './command.ts'
import { createHead, type RawConnection } from '../assurance/harness/raw-http.ts'
import { acceptedFrom, socketsOf } from '../assurance/harness/accepted-sockets.ts'
import { ask, close, connectionsTo, connectTo } from './worker-connection.ts'

const get = (path: string, headers = '') => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n${headers}\r\n`
const authorized = (key: string) => `Authorization: Bearer ${key}\r\n`
const list = (key: string) => get('/v1/pets?limit=100', authorized(key))
const REX = '{"name":"Rex","categoryId":1}'
const create = (key: string) => createHead(key, REX) + REX

interface Instance extends Served {
  key: string
  /** The first process: the one that was started, or its child where the launcher stands between (bin/petstore.js). */
  first: number
}

async function startInstance(folder: Folder, { env, ...rest }: RunOptions = {}): Promise<Instance> {
  const { key } = await makeKey(folder)
  const served = await serve(folder, { ...rest, env: { PETSTORE_WORKERS: '2', ...env } })
  const pid = served.child.pid!
  await until(() => childrenOf(pid).length > 0)
  const [child] = childrenOf(pid)
  const first = readFileSync(`/proc/${child}/cmdline`, 'utf8').includes('/worker.ts') ? pid : child!
  return { ...served, key, first }
}

function until(isSo: () => boolean | Promise<boolean>, what?: string): Promise<void> {
  return untilWithin(isSo, what, 120_000)
}

function killUnlessEnded(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch (error) {
    assert.equal((error as NodeJS.ErrnoException).code, 'ESRCH')
  }
}

/** A connection on which a worker waits for the body of a create. */
async function beginCreate(worker: number, instance: Instance): Promise<RawConnection> {
  const connection = await connectionOf(worker, instance)
  connection.send(createHead(instance.key, REX, 'Expect: 100-continue\r\n'))
  assert.equal((await connection.answer()).status, 100)
  return connection
}

/** A worker that is none of those. */
async function otherWorker({ first }: Instance, known: readonly number[]): Promise<number> {
  let found: number | undefined
  await until(() => (found = childrenOf(first).find((pid) => !known.includes(pid))) !== undefined)
  return found!
}

/** Waits until a worker has accepted a connection, and gives that. */
function connectionOf(worker: number, { url }: Instance): Promise<RawConnection> {
  return connectTo(worker, url)
}

async function countOfPets({ url, key }: Instance): Promise<number> {
  const answer = await fetch(`${url}/v1/pets?limit=100`, { headers: { Authorization: `Bearer ${key}` } })
  return ((await answer.json()) as unknown[]).length
}

/** The value of a sample on the page of metrics. */
async function scraped({ adminUrl }: Instance, sample: string): Promise<number> {
  const lines = (await (await fetch(`${adminUrl}/metrics`)).text()).split('\n')
  return Number(lines.find((line) => line.startsWith(`${sample} `))?.slice(sample.length))
}

function countOfLists(instance: Instance): Promise<number> {
  return scraped(instance, 'petstore_requests_total{operation="listPets",status="200"}')
}

const walOf = ({ path }: Folder) => join(path, 'data/petstore.db-wal')

describe('A worker that is killed', { concurrency: 2 }, () => {
  it('takes only its own connections with it, is replaced, and loses nothing', async () => {
    await using folder = await Folder.create()
    const instance = await startInstance(folder)
    const { key, first } = instance
    const connections = connectionsTo(instance)
    assert.deepEqual(new Set(await ask(connections, create(key))), new Set([201]))
    const [worker] = childrenOf(first)
    connections.push(await connectionOf(worker!, instance), await connectionOf(first, instance))
    const ports = connections.map(({ socket }) => socket.localPort!)
    const inodes = await acceptedFrom(ports, Number(new URL(instance.url).port))
    const ofWorker = socketsOf(worker!)
    const isLost = ({ socket }: RawConnection) => ofWorker.has(inodes.get(socket.localPort!)!)
    const [lost, left] = [connections.filter(isLost), connections.filter((connection) => !isLost(connection))]
    assert.ok(lost.length > 0 && left.length > 0)
    process.kill(worker!, 'SIGKILL')
    await until(() => lost.every(({ socket }) => socket.destroyed), 'its connections are closed')
    assert.deepEqual(new Set(await ask(left, list(key))), new Set([200]))
    const next = await connectionOf(await otherWorker(instance, [worker!]), instance)
    assert.deepEqual(await ask([next], list(key)), [200])
    assert.equal(await countOfPets(instance), 16)
    close([...connections, next])
    assert.ok(
      instance.lines.some(
        ({ msg, signal }) => msg === 'a worker ended; another one replaces it' && signal === 'SIGKILL',
      ),
    )
  })

  it('leaves the slots of its connections to others', async () => {
    await using folder = await Folder.create()
    const instance = await startInstance(folder, { env: { PETSTORE_MAX_CONNECTIONS: '6' } })
    const [worker] = childrenOf(instance.first)
    const kept = await connectionOf(instance.first, instance)
    const lost = await connectionOf(worker!, instance)
    assert.deepEqual(await ask([kept, lost], get('/livez')), [200, 200])
    process.kill(worker!, 'SIGKILL')
    await otherWorker(instance, [worker!])
    const all = [kept, ...connectionsTo(instance, 5)]
    assert.deepEqual(new Set(await ask(all, get('/livez'))), new Set([200]))
    close(all)
  })

  it('leaves what it had counted on the page of metrics, and nothing of what it had open', async () => {
    await using folder = await Folder.create()
    const instance = await startInstance(folder, { env: { PETSTORE_ADMIN_PORT: '0' } })
    const killed: number[] = []
    for (let round = 1; round <= 2; round += 1) {
      const worker = await otherWorker(instance, killed)
      const connection = await connectionOf(worker, instance)
      assert.deepEqual(await ask([connection], list(instance.key)), [200])
      // A worker that has no time to answer is missing in a scrape.
      await until(async () => (await countOfLists(instance)) === round, 'its request is counted')
      await until(async () => (await scraped(instance, 'petstore_connections')) === 1, 'its connection is counted')
      process.kill(worker, 'SIGKILL')
      killed.push(worker)
      await otherWorker(instance, killed)
      assert.equal(await countOfLists(instance), round)
      await until(async () => (await scraped(instance, 'petstore_connections')) === 0, 'what it had open is gone')
    }
  })

  for (const [when, env] of [
    ['', {}],
    [', also while the database is away', { DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none' }],
  ] as const) {
    it(`again and again ends the service, with a message${when}`, async () => {
      await using folder = await Folder.create()
      const instance = await startInstance(folder, { env })
      let isEnded = false
      const ended = instance.ended.finally(() => (isEnded = true))
      // Not just five: on a slow machine a worker may have run for more than 5 s when it is killed.
      await until(() => {
        for (const worker of childrenOf(instance.first)) killUnlessEnded(worker)
        return isEnded
      })
      const { code, stderr } = await ended
      assert.equal(code, 1)
      assert.match(stderr, /^petstore: 5 workers in a row ended within 5 s of their start/)
    })
  }

  it('does not end the service where one that had run for a while was among them', async () => {
    await using folder = await Folder.create()
    const instance = await startInstance(folder)
    const killed = await killYoung(instance, 4, [])
    const old = await otherWorker(instance, killed)
    await setTimeout(5200)
    process.kill(old, 'SIGKILL')
    await killYoung(instance, 4, [...killed, old])
    await setTimeout(500)
    assert.equal((await fetch(`${instance.url}/livez`)).status, 200)
    assert.ok(isRunning(instance.first))
  })

  it('is replaced as soon as possible where the system refuses a new process', async () => {
    await using folder = await Folder.create()
    const instance = await startInstance(folder)
    // Until then the pages are being loaded, which needs descriptors.
    await fetch(`${instance.url}/livez`)
    const { first } = instance
    const [worker] = childrenOf(first)
    execFileSync('prlimit', ['--pid', String(first), '--nofile=5:1000'])
    process.kill(worker!, 'SIGKILL')
    await until(() => instance.lines.some(({ msg }) => msg === 'a worker could not start'))
    execFileSync('prlimit', ['--pid', String(first), '--nofile=1000:1000'])
    await otherWorker(instance, [worker!])
    assert.equal((await fetch(`${instance.url}/livez`)).status, 200)
  })
})

/** Kills so many workers, each as soon as it is there; returns all that were killed. */
async function killYoung(instance: Instance, count: number, before: readonly number[]): Promise<number[]> {
  const killed = [...before]
  while (killed.length < before.length + count) {
    const worker = await otherWorker(instance, killed)
    process.kill(worker, 'SIGKILL')
    killed.push(worker)
  }
  return killed
}

describe('A worker that hangs', () => {
  it('fails no scrape, and is replaced, and no other worker is', async () => {
    await using folder = await Folder.create()
    const instance = await startInstance(folder, { env: { PETSTORE_WORKERS: '3', PETSTORE_ADMIN_PORT: '0' } })
    const workers = childrenOf(instance.first)
    assert.equal(workers.length, 2)
    const [worker] = workers
    using connection = await connectionOf(worker!, instance)
    assert.deepEqual(await ask([connection], list(instance.key)), [200])
    await until(async () => (await countOfLists(instance)) === 1, 'its request is counted')
    process.kill(worker!, 'SIGSTOP')
    assert.equal(await countOfLists(instance), 1)
    const next = await otherWorker(instance, workers)
    const ended = instance.lines.filter(({ msg }) => msg === 'a worker hangs and is ended')
    assert.deepEqual(
      ended.map(({ worker: pid }) => pid),
      [worker],
    )
    close([await connectionOf(next, instance)])
    assert.equal(await countOfLists(instance), 1)
  })
})

describe('A worker that is told to stop', { concurrency: 2 }, () => {
  it('alone, by SIGTERM, finishes its requests and is replaced', async () => {
    await using folder = await Folder.create()
    const instance = await startInstance(folder)
    const [worker] = childrenOf(instance.first)
    using connection = await connectionOf(worker!, instance)
    process.kill(worker!, 'SIGTERM')
    connection.send(get('/v1/pets', `${authorized(instance.key)}Petstore-Rehearse: delay=3s\r\n`))
    const { status, headers } = await connection.answer()
    assert.deepEqual([status, headers.get('connection')], [200, 'close'])
    const next = await otherWorker(instance, [worker!])
    close([await connectionOf(next, instance)])
    assert.ok(instance.lines.some(({ msg, code }) => msg === 'a worker ended; another one replaces it' && code === 0))
  })

  it('alone, and then with the whole service, finishes its requests', async () => {
    await using folder = await Folder.create()
    const instance = await startInstance(folder)
    const [worker] = childrenOf(instance.first)
    using running = await beginCreate(worker!, instance)
    using idle = await connectionOf(worker!, instance)
    process.kill(worker!, 'SIGTERM')
    // It is closed when the worker has begun to stop.
    await until(() => idle.socket.destroyed)
    process.kill(instance.first, 'SIGTERM')
    await until(() => instance.lines.some(({ msg }) => String(msg).startsWith('stopping')))
    running.send(REX)
    assert.equal((await running.answer()).status, 201)
    assert.equal((await instance.ended).code, 0)
  })

  it('with the whole service serves all pages during the drain, and so does one that is started meanwhile', async () => {
    await using folder = await Folder.create()
    const instance = await startInstance(folder, { env: { PETSTORE_DRAIN_SECONDS: '20' } })
    const { first } = instance
    const [worker] = childrenOf(first)
    const connections = connectionsTo(instance)
    await ask(connections, get('/livez'))
    // As systemd does it: to all processes.
    for (const pid of [first, worker!]) process.kill(pid, 'SIGTERM')
    await until(() => instance.lines.some(({ msg }) => String(msg).startsWith('draining')))
    await setTimeout(1500)
    assert.deepEqual(new Set(await ask(connections, get('/docs'))), new Set([200]))
    assert.deepEqual(await ask([await connectionOf(worker!, instance)], get('/readyz')), [503])
    process.kill(worker!, 'SIGKILL')
    const late = await otherWorker(instance, [worker!])
    assert.deepEqual(await ask([await connectionOf(late, instance)], get('/readyz')), [503])
    assert.equal((await instance.ended).code, 0)
    assert.ok(!isRunning(late))
  })

  it('with the whole service by Ctrl-C, which reaches every process, finishes its requests', async () => {
    await using folder = await Folder.create()
    const instance = await startInstance(folder)
    const [worker] = childrenOf(instance.first)
    using connection = await beginCreate(worker!, instance)
    for (const pid of [worker!, instance.first]) process.kill(pid, 'SIGINT')
    await until(() => instance.lines.some(({ msg }) => String(msg).startsWith('stopping')))
    connection.send(REX)
    assert.equal((await connection.answer()).status, 201)
    assert.equal((await instance.ended).code, 0)
  })

  it('with the whole service while it starts does not go on serving', async () => {
    await using folder = await Folder.create()
    const instance = await startInstance(folder)
    const [worker] = childrenOf(instance.first)
    process.kill(worker!, 'SIGKILL')
    const next = await otherWorker(instance, [worker!])
    process.kill(instance.first, 'SIGTERM')
    const { code, stderr } = await instance.ended
    assert.deepEqual([code, stderr], [0, ''])
    assert.ok(!isRunning(next))
    await assert.rejects(fetch(`${instance.url}/livez`))
    assert.ok(!instance.lines.some(({ msg }) => msg === 'a worker could not start'))
  })
})

describe('A worker whose output has lost its reader', () => {
  it('goes on answering: the first process decides when the service stops', async () => {
    await using folder = await Folder.create()
    const instance = await startInstance(folder, { env: { PETSTORE_LOG_LEVEL: 'info' } })
    const [worker] = childrenOf(instance.first)
    using connection = await connectionOf(worker!, instance)
    instance.child.stdout!.destroy()
    for (let nth = 0; nth < 3; nth += 1) assert.deepEqual(await ask([connection], list(instance.key)), [200])
    assert.ok(isRunning(worker!))
  })
})

describe('A worker whose disk fails to sync', { concurrency: 2 }, () => {
  /** Either the workers or the first process have the faulty disk: the others must be told. */
  async function startOnFaultyDisk(folder: Folder, { env = {}, isInWorkers = true } = {}) {
    const order = join(folder.path, 'order')
    const faulty = JSON.stringify(new URL('faulty-sync.ts', import.meta.url).href)
    const onlyThere = `if (process.argv[1].endsWith('/worker.ts') === ${isInWorkers}) await import(${faulty})`
    const preload = `--import data:text/javascript,${encodeURIComponent(onlyThere)}`
    const instance = await startInstance(folder, { env: { NODE_OPTIONS: preload, FAULTY_SYNC: order, ...env } })
    const [worker] = childrenOf(instance.first)
    using before = await connectionOf(worker!, instance)
    assert.deepEqual(await ask([before], create(instance.key)), [201])
    return { instance, worker: worker!, failSyncs: () => writeFileSync(order, 'fail') }
  }

  it('ends the whole service, with the reason', async () => {
    await using folder = await Folder.create()
    const { instance, worker, failSyncs } = await startOnFaultyDisk(folder)
    using connection = await connectionOf(worker, instance)
    failSyncs()
    assert.deepEqual(await ask([connection], create(instance.key)), [503])
    const { code, stderr } = await instance.ended
    assert.deepEqual([code, stderr], [1, 'petstore: the disk did not sync: EIO: i/o error, fdatasync\n'])
    await until(() => !isRunning(worker))
    // No process has closed the database, which would copy the log unchecked.
    assert.ok(instance.lines.some(({ msg }) => msg === 'exiting; the next start recovers the database'))
    assert.ok(statSync(walOf(folder)).size > 0)
  })

  for (const isInWorkers of [true, false]) {
    it(`is the last to write: no other process acknowledges a create (${isInWorkers ? 'a worker' : 'the first process'})`, async () => {
      await using folder = await Folder.create()
      const env = { PETSTORE_WORKERS: '3' }
      const { instance, worker, failSyncs } = await startOnFaultyDisk(folder, { env, isInWorkers })
      const processes = [worker, await otherWorker(instance, [worker]), instance.first]
      if (!isInWorkers) processes.reverse()
      const [failing, ...others] = await Promise.all(processes.map((pid) => connectionOf(pid, instance)))
      assert.deepEqual(await ask(others, create(instance.key)), [201, 201])
      failSyncs()
      assert.deepEqual(await ask([failing!], create(instance.key)), [503])
      await until(() => instance.lines.some(({ msg }) => String(msg).startsWith('exiting')))
      const answers = await Promise.allSettled(others.map((connection) => ask([connection], create(instance.key))))
      for (const answer of answers) assert.ok(answer.status === 'rejected' || answer.value[0] === 503)
      close([failing!, ...others])
      assert.equal((await instance.ended).code, 1)
    })
  }

  it('during a stop does not let the first process close the database, which is killed instead', async () => {
    await using folder = await Folder.create()
    const { instance, worker, failSyncs } = await startOnFaultyDisk(folder)
    using running = await beginCreate(worker, instance)
    process.kill(instance.first, 'SIGTERM')
    await until(() => instance.lines.some(({ msg }) => String(msg).startsWith('stopping')))
    failSyncs()
    running.send(REX)
    assert.equal((await running.answer()).status, 503)
    const { code, signal } = await instance.ended
    assert.deepEqual([code, signal], [null, 'SIGKILL'])
    assert.ok(statSync(walOf(folder)).size > 0)
  })
})

describe('A worker of a service whose write-ahead log is damaged while another process has it open', () => {
  it('acknowledges no create before the first process has made the log durable', async () => {
    await using folder = await Folder.create()
    await folder.run(['migrate'])
    using database = new DatabaseSync(join(folder.path, 'data/petstore.db'))
    database.exec("INSERT INTO pets (name, category_id, status) VALUES ('Rex', 1, 'available')")
    /** A byte of the checksum of the first frame. */
    const place = 32 + 16
    const log = readFileSync(walOf(folder))
    const setByte = (value: number) => {
      const file = openSync(walOf(folder), 'r+')
      writeSync(file, Buffer.of(value), 0, 1, place)
      closeSync(file)
    }
    setByte(log[place]! ^ 1)
    const instance = await startInstance(folder)
    using connection = await connectionOf(childrenOf(instance.first)[0]!, instance)
    assert.deepEqual(await ask([connection], create(instance.key)), [503])
    setByte(log[place]!)
    await until(async () => (await ask([connection], create(instance.key)))[0] === 201)
  })
})

describe('A worker of a service with a memory limit', () => {
  it('has the same limit', async () => {
    const limit = '--max-old-space-size=300'
    await using folder = await Folder.create([process.execPath, limit, '--title=petstore', MAIN])
    const instance = await startInstance(folder)
    const [worker] = childrenOf(instance.first)
    const words = readFileSync(`/proc/${worker}/cmdline`, 'utf8').split('\0')
    assert.ok(words.includes(limit), words.join(' '))
    assert.ok(!words.includes('--title=petstore'), 'other options are not passed on')
  })
})

describe('The first process', () => {
  it('takes the workers with it also where it is killed during a drain', async () => {
    await using folder = await Folder.create()
    const instance = await startInstance(folder, { env: { PETSTORE_DRAIN_SECONDS: '60' } })
    const [worker] = childrenOf(instance.first)
    using connection = await connectionOf(worker!, instance)
    process.kill(instance.first, 'SIGTERM')
    await until(async () => (await ask([connection], get('/readyz')))[0] === 503)
    process.kill(instance.first, 'SIGKILL')
    await instance.ended
    await until(() => !isRunning(worker!))
  })

  it('takes the workers with it where it is killed, and what was acknowledged is there after the next start', async () => {
    await using folder = await Folder.create()
    const instance = await startInstance(folder)
    const workers = childrenOf(instance.first)
    assert.equal(workers.length, 1)
    const connections = connectionsTo(instance)
    let acknowledged = 0
    const creating = connections.map(async (connection) => {
      while (!connection.socket.destroyed) {
        connection.send(create(instance.key))
        const { status } = await connection.answer(1000).catch(() => ({ status: undefined }))
        if (status === 201) acknowledged += 1
      }
    })
    await until(() => acknowledged > 40)
    process.kill(instance.first, 'SIGKILL')
    await instance.ended
    await until(() => workers.every((pid) => !isRunning(pid)))
    await Promise.all(creating)
    const { port } = new URL(instance.url)
    const again = { ...instance, ...(await serve(folder, { env: { PORT: port } })) }
    let [count, cursor] = [0, '']
    do {
      const answer = await fetch(`${again.url}/v1/pets?limit=100${cursor}`, {
        headers: { Authorization: `Bearer ${instance.key}` },
      })
      count += ((await answer.json()) as unknown[]).length
      const next = /[?&](cursor=[^&>]+)/.exec(answer.headers.get('link') ?? '')?.[1]
      cursor = next === undefined ? '' : `&${next}`
    } while (cursor !== '')
    assert.ok(count >= acknowledged, `${acknowledged} were acknowledged, ${count} are there`)
  })
})

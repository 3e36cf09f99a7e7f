// How processes of an instance end: killed, stopped alone or all together. Nothing acknowledged is lost, and nothing is left behind.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { closeSync, openSync, readFileSync, statSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, it } from 'node:test'
import { create, get, list, LIVEZ, REX } from '../harness/connections/raw-http.ts'
import { setTimeout } from 'node:timers/promises'
import { until } from '../harness/until.ts'
import { childrenOf, isRunning } from '../harness/programs/process-tree.ts'
import { freePort } from '../harness/connections/free-port.ts'
import { MAIN } from '../harness/programs/instance.ts'
import { Folder, makeKey, messages, type Served, serve } from '../harness/programs/command.ts'
import type { RawConnection } from '../harness/connections/raw-http.ts'
import { acceptedFrom, socketsOf } from '../harness/connections/accepted-sockets.ts'
import {
  ask,
  askForAll,
  beginCreate,
  close,
  connectionsTo,
  connectTo,
} from '../harness/connections/worker-connection.ts'

interface Instance extends Served, AsyncDisposable {
  folder: Folder
  key: string
  /** The first process: the one that was started, or its child where the launcher stands between (bin/petstore.js). */
  first: number
  /** The first of the workers that it has started. */
  worker: number
}

/** Starts an instance of two processes, in a folder of its own or in this one. */
async function startInstance(env: Record<string, string> = {}, folder?: Folder): Promise<Instance> {
  folder ??= await Folder.create()
  const { key } = await makeKey(folder)
  const served = await serve(folder, { env: { PETSTORE_WORKERS: '2', ...env } })
  const pid = served.child.pid!
  await until(() => childrenOf(pid).length > 0)
  const [child] = childrenOf(pid)
  const first = readFileSync(`/proc/${child}/cmdline`, 'utf8').includes('/worker.ts') ? pid : child!
  const worker = childrenOf(first)[0]!
  return { ...served, folder, key, first, worker, [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose]() }
}

function untilLogged(instance: Instance, message: string): Promise<void> {
  return until(() => messages(instance).some((each) => each.startsWith(message)), message)
}

function hasLogged({ lines }: Instance, message: string, details: object): boolean {
  return lines.some((line) => line['msg'] === message && Object.entries(details).every(([key, is]) => line[key] === is))
}

/** A worker that is none of those. */
async function otherWorker({ first }: Instance, known: readonly number[]): Promise<number> {
  let found: number | undefined
  await until(() => (found = childrenOf(first).find((pid) => !known.includes(pid))) !== undefined)
  return found!
}

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

/** The value of a sample on the page of metrics. */
async function scraped({ adminUrl }: Instance, sample: string): Promise<number> {
  const lines = (await (await fetch(`${adminUrl}/metrics`)).text()).split('\n')
  return Number(lines.find((line) => line.startsWith(`${sample} `))?.slice(sample.length))
}

/** All animals that there are. */
async function countOfPets({ url, key }: Instance): Promise<number> {
  let [count, cursor] = [0, '']
  do {
    const headers = { Authorization: `Bearer ${key}` }
    const answer = await fetch(`${url}/v1/pets?limit=100${cursor}`, { headers })
    count += ((await answer.json()) as unknown[]).length
    const next = /[?&](cursor=[^&>]+)/.exec(answer.headers.get('link') ?? '')?.[1]
    cursor = next === undefined ? '' : `&${next}`
  } while (cursor !== '')
  return count
}

const walOf = ({ path }: Folder) => join(path, 'data/petstore.db-wal')

describe('A worker that is killed', { concurrency: 2 }, () => {
  it('takes only its own connections with it, is replaced, and loses nothing', async () => {
    await using instance = await startInstance()
    const { key, first, worker, url } = instance
    const connections = connectionsTo(instance)
    await askForAll(connections, create(key), 201)
    connections.push(await connectTo(worker, url), await connectTo(first, url))
    const ports = connections.map(({ socket }) => socket.localPort!)
    const inodes = await acceptedFrom(ports, Number(new URL(url).port))
    const ofWorker = socketsOf(worker)
    const isLost = ({ socket }: RawConnection) => ofWorker.has(inodes.get(socket.localPort!)!)
    const [lost, left] = [connections.filter(isLost), connections.filter((connection) => !isLost(connection))]
    assert.ok(lost.length > 0 && left.length > 0)
    process.kill(worker, 'SIGKILL')
    await until(() => lost.every(({ socket }) => socket.destroyed), 'its connections are closed')
    await askForAll(left, list(key), 200)
    const next = await connectTo(await otherWorker(instance, [worker]), url)
    assert.deepEqual(await ask([next], list(key)), [200])
    assert.equal(await countOfPets(instance), 16)
    close([...connections, next])
    assert.ok(hasLogged(instance, 'a worker ended; another one replaces it', { signal: 'SIGKILL' }))
  })

  it('leaves what it had counted on the page of metrics', async () => {
    await using instance = await startInstance({ PETSTORE_ADMIN_PORT: '0' })
    const lists = () => scraped(instance, 'petstore_requests_total{operation="listPets",status="200"}')
    const open = () => scraped(instance, 'petstore_connections')
    const killed: number[] = []
    for (let round = 1; round <= 2; round += 1) {
      const worker = await otherWorker(instance, killed)
      const connection = await connectTo(worker, instance.url)
      assert.deepEqual(await ask([connection], list(instance.key)), [200])
      // A worker that has no time to answer is missing in a scrape.
      await until(async () => (await lists()) === round, 'its request is counted')
      await until(async () => (await open()) === 1, 'its connection is counted')
      process.kill(worker, 'SIGKILL')
      killed.push(worker)
      await otherWorker(instance, killed)
      assert.equal(await lists(), round)
      await until(async () => (await open()) === 0, 'what it had open is gone')
    }
  })

  it('again and again ends the service, with a message, also while the database is away', async () => {
    await using instance = await startInstance({ DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none' })
    const waiting = messages(instance).filter((message) => message.startsWith('waiting for the database'))
    assert.equal(waiting.length, 1, 'said once for all processes')
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

  it('does not end the service where one that had run for a while was among them', async () => {
    await using instance = await startInstance()
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
    await using instance = await startInstance()
    const { first, worker, url } = instance
    // Until it answers, it is loading the pages, which needs descriptors.
    using toFirst = await connectTo(first, url)
    assert.deepEqual(await ask([toFirst], LIVEZ), [200])
    execFileSync('prlimit', ['--pid', String(first), '--nofile=5:1000'])
    process.kill(worker, 'SIGKILL')
    await untilLogged(instance, 'a worker could not start')
    execFileSync('prlimit', ['--pid', String(first), '--nofile=1000:1000'])
    await otherWorker(instance, [worker])
    assert.equal((await fetch(`${url}/livez`)).status, 200)
  })
})

function killUnlessEnded(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch (error) {
    assert.equal((error as NodeJS.ErrnoException).code, 'ESRCH')
  }
}

describe('A worker that is told to stop', { concurrency: 2 }, () => {
  const SIGNALS: Record<string, (instance: Instance) => Promise<void>> = {
    'alone, which it ignores, and then with the whole service': async ({ worker, first }) => {
      for (const signal of ['SIGUSR1', 'SIGHUP', 'SIGTERM'] as const) process.kill(worker, signal)
      process.kill(first, 'SIGTERM')
    },
    'with the whole service by Ctrl-C, which reaches every process,': async ({ worker, first }) => {
      for (const pid of [worker, first]) process.kill(pid, 'SIGINT')
    },
  }
  for (const [how, stop] of Object.entries(SIGNALS)) {
    it(`${how} finishes its requests`, async () => {
      await using instance = await startInstance()
      using running = await connectTo(instance.worker, instance.url)
      await beginCreate(running, instance.key)
      await stop(instance)
      await untilLogged(instance, 'stopping')
      running.send(REX)
      assert.equal((await running.answer()).status, 201)
      const { code, stderr } = await instance.ended
      assert.deepEqual([code, stderr], [0, ''])
    })
  }

  it('with the whole service serves all pages during the drain, and so does one that is started meanwhile', async () => {
    await using instance = await startInstance({ PETSTORE_DRAIN_SECONDS: '20' })
    const { first, worker, url } = instance
    const connections = connectionsTo(instance)
    await ask(connections, LIVEZ)
    // As systemd does it: to all processes.
    for (const pid of [first, worker]) process.kill(pid, 'SIGTERM')
    await untilLogged(instance, 'draining')
    await setTimeout(1500)
    await askForAll(connections, get('/docs'), 200)
    assert.deepEqual(await ask([await connectTo(worker, url)], get('/readyz')), [503])
    process.kill(worker, 'SIGKILL')
    const late = await otherWorker(instance, [worker])
    assert.deepEqual(await ask([await connectTo(late, url)], get('/readyz')), [503])
    assert.equal((await instance.ended).code, 0)
    assert.ok(!isRunning(late))
  })

  it('with the whole service while it starts does not go on serving', async () => {
    await using instance = await startInstance()
    process.kill(instance.worker, 'SIGKILL')
    const next = await otherWorker(instance, [instance.worker])
    process.kill(instance.first, 'SIGTERM')
    const { code, stderr } = await instance.ended
    assert.deepEqual([code, stderr], [0, ''])
    assert.ok(!isRunning(next))
    await assert.rejects(fetch(`${instance.url}/livez`))
    assert.ok(!messages(instance).includes('a worker could not start'))
  })
})

describe('A worker', { concurrency: 2 }, () => {
  it('has the memory limit of the service, and goes on answering when its output has lost its reader', async () => {
    const limit = '--max-old-space-size=300'
    const folder = await Folder.create([process.execPath, limit, '--title=petstore', MAIN])
    await using instance = await startInstance({ PETSTORE_LOG_LEVEL: 'info' }, folder)
    const words = readFileSync(`/proc/${instance.worker}/cmdline`, 'utf8').split('\0')
    assert.ok(words.includes(limit), words.join(' '))
    assert.ok(!words.includes('--title=petstore'), 'other options are not passed on')
    using connection = await connectTo(instance.worker, instance.url)
    instance.child.stdout!.destroy()
    // The first process decides when the service stops.
    for (let nth = 0; nth < 3; nth += 1) assert.deepEqual(await ask([connection], list(instance.key)), [200])
    assert.ok(isRunning(instance.worker))
  })

  it('of a service whose write-ahead log is damaged while another process has it open acknowledges no create before the first process has made the log durable', async () => {
    const folder = await Folder.create()
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
    await using instance = await startInstance({}, folder)
    using connection = await connectTo(instance.worker, instance.url)
    assert.deepEqual(await ask([connection], create(instance.key)), [503])
    setByte(log[place]!)
    await until(async () => (await ask([connection], create(instance.key)))[0] === 201)
  })
})

describe('A worker whose disk fails to sync', { concurrency: 2 }, () => {
  /** Either the workers or the first process have the faulty disk: the others must be told. */
  async function startOnFaultyDisk(env: Record<string, string> = {}, isInWorkers = true) {
    const folder = await Folder.create()
    const order = join(folder.path, 'order')
    const faulty = JSON.stringify(new URL('../harness/databases/faulty-sync.ts', import.meta.url).href)
    const onlyThere = `if (process.argv[1].endsWith('/worker.ts') === ${isInWorkers}) await import(${faulty})`
    const preload = `--import data:text/javascript,${encodeURIComponent(onlyThere)}`
    const instance = await startInstance({ NODE_OPTIONS: preload, FAULTY_SYNC: order, ...env }, folder)
    const connection = await connectTo(instance.worker, instance.url)
    assert.deepEqual(await ask([connection], create(instance.key)), [201])
    return { ...instance, connection, failSyncs: () => writeFileSync(order, 'fail') }
  }

  for (const isInWorkers of [true, false]) {
    it(`ends the whole service, with the reason, and is the last to write: no other process acknowledges a create (${isInWorkers ? 'a worker' : 'the first process'})`, async () => {
      await using instance = await startOnFaultyDisk({ PETSTORE_WORKERS: '3' }, isInWorkers)
      const { worker, first, key, url } = instance
      const processes = [worker, await otherWorker(instance, [worker]), first]
      if (!isInWorkers) processes.reverse()
      const others = await Promise.all(processes.slice(1).map((pid) => connectTo(pid, url)))
      await askForAll(others, create(key), 201)
      // Not earlier: a connection that asks nothing gets 408, and all this takes long on a busy machine.
      const failing = await connectTo(processes[0]!, url)
      instance.failSyncs()
      assert.deepEqual(await ask([failing], create(key)), [503])
      await untilLogged(instance, 'exiting')
      const answers = await Promise.allSettled(others.map((connection) => ask([connection], create(key))))
      for (const answer of answers) assert.ok(answer.status === 'rejected' || answer.value[0] === 503)
      close([failing, ...others])
      const { code, stderr } = await instance.ended
      assert.deepEqual([code, stderr], [1, 'petstore: the disk did not sync: EIO: i/o error, fdatasync\n'])
      await until(() => processes.every((pid) => !isRunning(pid)))
      // No process has closed the database, which would copy the log unchecked.
      assert.ok(messages(instance).includes('exiting; the next start recovers the database'))
      assert.ok(statSync(walOf(instance.folder)).size > 0)
    })
  }

  it('during a stop does not let the first process close the database, which is killed instead', async () => {
    await using instance = await startOnFaultyDisk()
    const { connection } = instance
    await beginCreate(connection, instance.key)
    process.kill(instance.first, 'SIGTERM')
    await untilLogged(instance, 'stopping')
    instance.failSyncs()
    connection.send(REX)
    assert.equal((await connection.answer()).status, 503)
    const { code, signal } = await instance.ended
    assert.deepEqual([code, signal], [null, 'SIGKILL'])
    assert.ok(statSync(walOf(instance.folder)).size > 0)
  })
})

describe('The first process', { concurrency: 2 }, () => {
  it('takes the workers with it also where it is killed during a drain', async () => {
    await using instance = await startInstance({ PETSTORE_DRAIN_SECONDS: '60' })
    using connection = await connectTo(instance.worker, instance.url)
    process.kill(instance.first, 'SIGTERM')
    await until(async () => (await ask([connection], get('/readyz')))[0] === 503)
    process.kill(instance.first, 'SIGKILL')
    await instance.ended
    await until(() => !isRunning(instance.worker))
  })

  it('takes the workers with it where it is killed, and what was acknowledged is there after the next start', async () => {
    const PORT = String(await freePort())
    await using instance = await startInstance({ PORT })
    const workers = childrenOf(instance.first)
    assert.equal(workers.length, 1)
    let acknowledged = 0
    const creating = connectionsTo(instance).map(async (connection) => {
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
    await serve(instance.folder, { env: { PORT } })
    const count = await countOfPets(instance)
    assert.ok(count >= acknowledged, `${acknowledged} were acknowledged, ${count} are there`)
  })
})

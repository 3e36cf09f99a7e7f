// With workers the service is still one service: to its callers, its operator and its people.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdir, readdir, readFile } from 'node:fs/promises'
import { describe, it } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { Folder, makeKey as makeKeyByCommand, serve } from './command.ts'
import { ConsoleClient } from './console-client.ts'
import { describeService, makeKey, PASSWORD, startPetstore } from './harness.ts'
import { RawConnection } from '../harness/raw-http.ts'

const TWO = { PETSTORE_WORKERS: '2' }

const list = (key: string, path = '/v1/pets') =>
  `GET ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${key}\r\n\r\n`
const create = (key: string, name: string) => {
  const body = JSON.stringify({ name, categoryId: 1 })
  return `POST /v1/pets HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`
}

/** The ids of the processes that this one has started. */
async function childrenOf(pid: number): Promise<number[]> {
  return (await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8')).split(' ').filter(Boolean).map(Number)
}

/** Connections enough that each worker has some. */
function connectionsTo({ url }: { url: string }, count = 16): RawConnection[] {
  return Array.from({ length: count }, () => new RawConnection(url))
}

async function ask(connections: readonly RawConnection[], request: string): Promise<number[]> {
  for (const connection of connections) connection.send(request)
  return Promise.all(connections.map(async (connection) => (await connection.answer()).status))
}

function close(connections: readonly RawConnection[]): void {
  for (const { socket } of connections) socket.destroy()
}

describeService(
  'Two workers',
  (service) => {
    it('each show an animal from the moment its create is answered', async () => {
      const petstore = service()
      const connections = connectionsTo(petstore)
      for (let round = 0; round < 10; round += 1) {
        const writer = connections[round]!
        writer.send(create(petstore.key, `Animal ${round}`))
        assert.equal((await writer.answer()).status, 201)
        for (const connection of connections) connection.send(list(petstore.key, '/v1/pets?limit=1'))
        for (const connection of connections)
          assert.match((await connection.answer()).body, new RegExp(`"Animal ${round}"`))
      }
      close(connections)
    })

    it('refuse a key from its revocation on, on every connection', async () => {
      const petstore = service()
      const { apiKey, key } = await makeKey(petstore)
      const connections = connectionsTo(petstore)
      assert.deepEqual(new Set(await ask(connections, list(key))), new Set([200]))
      await petstore.accounts.revokeKey(apiKey, 'console')
      assert.deepEqual(new Set(await ask(connections, list(key))), new Set([401]))
      close(connections)
    })

    it('give ids that grow in the order of the creates, and lose none of many at once', async () => {
      const petstore = service()
      const answers = await Promise.all(
        Array.from({ length: 200 }, (_, index) => petstore.add({ name: `Crowd ${index}`, categoryId: 1 })),
      )
      const ids = await Promise.all(answers.map(async (answer) => ((await answer.json()) as { id: number }).id))
      assert.equal(new Set(ids).size, 200)
      const { id } = (await (await petstore.add({ name: 'Last', categoryId: 1 })).json()) as { id: number }
      assert.ok(ids.every((earlier) => earlier < id))
    })

    it('show people the calls of all workers, also those of a moment ago', async () => {
      const petstore = service()
      const { account, key } = await makeKey(petstore)
      const connections = connectionsTo(petstore)
      await ask(connections, list(key))
      close(connections)
      const client = new ConsoleClient(petstore.url)
      await client.signIn(account.email, PASSWORD)
      assert.match((await client.get('/keys')).body, /Calls, 7 days<\/dt><dd class="number">16</)
    })
  },
  { env: TWO },
)

describe('Workers', () => {
  it('share the rate limit: an account gets exactly as many requests as it allows, on all connections together', async () => {
    await using petstore = await startPetstore({ env: { ...TWO, PETSTORE_RATE_LIMIT: '20/600' } })
    const connections = connectionsTo(petstore, 40)
    const statuses = await ask(connections, list(petstore.key))
    close(connections)
    assert.deepEqual(
      [200, 429].map((status) => statuses.filter((each) => each === status).length),
      [20, 20],
    )
  })

  it('have one page of metrics, with the sum of what each has counted', async () => {
    await using petstore = await startPetstore({ env: { ...TWO, PETSTORE_ADMIN_PORT: '0' } })
    const connections = connectionsTo(petstore)
    await ask(connections, list(petstore.key))
    const page = await (await fetch(`${petstore.adminUrl}/metrics`)).text()
    close(connections)
    assert.match(page, /^petstore_requests_total\{operation="listPets",status="200"\} 16$/m)
    assert.match(page, /^petstore_connections 16$/m)
    assert.match(page, /^petstore_ready 1$/m)
    assert.match(page, /^petstore_build_info\{version="[\d.]+"\} 1$/m)
  })

  it('keep their counts on that page when they end', async () => {
    await using folder = await Folder.create()
    const { key } = await makeKeyByCommand(folder)
    const served = await serve(folder, { env: { ...TWO, PETSTORE_ADMIN_PORT: '0' } })
    const lists = async () =>
      Number(
        /^petstore_requests_total\{operation="listPets",status="200"\} (\d+)$/m.exec(
          await (await fetch(`${served.adminUrl}/metrics`)).text(),
        )?.[1],
      )
    const primary = await primaryOf(served.child.pid!)
    await fetch(`${served.url}/livez`)
    for (let round = 1; round <= 2; round += 1) {
      const connections = connectionsTo(served)
      await ask(connections, list(key))
      close(connections)
      assert.equal(await lists(), round * 16)
      const [worker] = await childrenOf(primary)
      process.kill(worker!, 'SIGKILL')
      await until(async () => (await childrenOf(primary)).some((pid) => pid !== worker))
      assert.equal(await lists(), round * 16)
    }
  })

  it('pass on pages and forms, and the address of the client', async () => {
    await using petstore = await startPetstore({
      env: { ...TWO, PETSTORE_TRUST_PROXY: 'loopback', PETSTORE_SIGNUP: 'open' },
    })
    const forwarded = { 'X-Forwarded-For': '203.0.113.7', 'Petstore-Client-Address': '198.51.100.9' }
    await fetch(`${petstore.url}/nowhere`, { headers: forwarded })
    const line = petstore.logged.find(({ path }) => path === '/nowhere')
    assert.equal(line?.['address'], '203.0.113.7')
    const head = await fetch(`${petstore.url}/docs`, { method: 'HEAD' })
    assert.deepEqual([head.status, await head.text()], [200, ''])
  })

  it('are refused for a database in memory, with the way out', async () => {
    await using folder = await Folder.create()
    const { code, stderr } = await folder.run([
      'serve',
      '--workers',
      '2',
      '--database',
      'sqlite::memory:',
      '--port',
      '0',
    ])
    assert.deepEqual(
      [code, stderr],
      [1, 'petstore: A database in memory belongs to one process. Use --workers 1, or a file with --database.\n'],
    )
  })

  it('tell that the port is in use, as one process does', async () => {
    await using folder = await Folder.create()
    const first = await serve(folder)
    const { port } = new URL(first.url)
    const { code, stderr } = await folder.run([
      'serve',
      '--workers',
      '2',
      '--port',
      port,
      '--database',
      'sqlite:other.db',
    ])
    assert.equal(code, 1)
    assert.match(stderr, new RegExp(`^petstore: Cannot listen on 127\\.0\\.0\\.1 port ${port}: it is in use;`))
  })
})

describe('A worker that is killed', { concurrency: 2 }, () => {
  it('takes only its own connections with it, is replaced, and loses nothing', async () => {
    await using folder = await Folder.create()
    const { key } = await makeKeyByCommand(folder)
    const served = await serve(folder, { env: TWO })
    // Until then the primary loads its pages, and accepts little.
    await fetch(`${served.url}/livez`)
    const connections = connectionsTo(served)
    assert.deepEqual(new Set(await ask(connections, create(key, 'Rex'))), new Set([201]))
    const [first, ...others] = await childrenOf(await primaryOf(served.child.pid!))
    process.kill(first!, 'SIGKILL')
    await until(() => connections.some(({ socket }) => socket.destroyed))
    await setTimeout(100)
    const left = connections.filter(({ socket }) => !socket.destroyed)
    assert.ok(left.length > 0 && left.length < connections.length)
    assert.deepEqual(new Set(await ask(left, list(key))), new Set([200]))
    const primary = await primaryOf(served.child.pid!)
    await until(async () => (await childrenOf(primary)).filter((pid) => !others.includes(pid)).length === 1)
    const more = connectionsTo(served)
    assert.deepEqual(new Set(await ask(more, list(key, '/v1/pets?limit=100'))), new Set([200]))
    close([...connections, ...more])
    const answer = await fetch(`${served.url}/v1/pets?limit=100`, { headers: { Authorization: `Bearer ${key}` } })
    assert.equal(((await answer.json()) as unknown[]).length, 16)
    assert.ok(
      served.lines.some(({ msg, signal }) => msg === 'a worker ended; another one replaces it' && signal === 'SIGKILL'),
    )
  })

  it('again and again ends the service, with a message', async () => {
    await using folder = await Folder.create()
    const served = await serve(folder, { env: TWO })
    const primary = await primaryOf(served.child.pid!)
    const killed = new Set<number>()
    while (killed.size < 5) {
      const next = (await childrenOf(primary)).find((pid) => !killed.has(pid))
      if (next !== undefined) {
        killed.add(next)
        process.kill(next, 'SIGKILL')
      }
      await setTimeout(10)
    }
    const { code, stderr } = await served.ended
    assert.equal(code, 1)
    assert.match(stderr, /^petstore: 5 workers in a row ended within 5 s of their start/)
  })
})

describe('The primary', () => {
  it('tells which folder its workers need, where it cannot have a socket there', async () => {
    await using folder = await Folder.create()
    const long = `${folder.path}/${'x'.repeat(100)}`
    await mkdir(long)
    const { code, stderr } = await folder.run(['serve', '--workers', '2', '--port', '0'], { env: { TMPDIR: long } })
    assert.equal(code, 1)
    assert.match(
      stderr,
      new RegExp(
        `^petstore: Workers need a socket in the folder for temporary files, ${long}: .+ or use --workers 1\\.\n$`,
      ),
    )
    assert.deepEqual(
      (await readdir(long)).filter((name) => name.startsWith('petstore-')),
      [],
    )
  })

  it('replaces a worker as soon as it can where the system refuses a new process', async () => {
    await using folder = await Folder.create()
    const served = await serve(folder, { env: TWO })
    // Until then the primary loads its pages, and needs descriptors for that.
    await fetch(`${served.url}/livez`)
    const primary = await primaryOf(served.child.pid!)
    const [first] = await childrenOf(primary)
    execFileSync('prlimit', ['--pid', String(primary), '--nofile=5:1000'])
    process.kill(first!, 'SIGKILL')
    await until(() => served.lines.some(({ msg }) => msg === 'a worker could not start'))
    execFileSync('prlimit', ['--pid', String(primary), '--nofile=1000:1000'])
    await until(async () => (await childrenOf(primary)).some((pid) => pid !== first))
    assert.equal((await fetch(`${served.url}/livez`)).status, 200)
  })
})

describe('The process that writes', () => {
  it('takes the workers with it where it is killed: no process and no file is left behind', async () => {
    await using folder = await Folder.create()
    const served = await serve(folder, { env: { ...TWO, TMPDIR: folder.path } })
    const temporary = async () => (await readdir(folder.path)).filter((name) => name.startsWith('petstore-'))
    assert.equal((await temporary()).length, 1)
    const primary = await primaryOf(served.child.pid!)
    const workers = await childrenOf(primary)
    assert.equal(workers.length, 1)
    process.kill(primary, 'SIGKILL')
    await served.ended
    await until(() => workers.every((pid) => !isAlive(pid)))
    assert.deepEqual(await temporary(), [])
  })
})

/** The process that was started, or its child: the launcher may stand between (bin/petstore.js). */
async function primaryOf(pid: number): Promise<number> {
  const [child] = await childrenOf(pid)
  return (await readFile(`/proc/${child}/cmdline`, 'utf8')).includes('worker') ? pid : child!
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await isSo())) await setTimeout(10)
}

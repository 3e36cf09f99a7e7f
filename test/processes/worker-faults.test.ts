// Workers that hang or cannot start, in a service of this process, whose timers the tests advance.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { afterEach, describe, it } from 'node:test'
import { list as listWith, LIVEZ } from '../harness/connections/raw-http.ts'
import { sqlite } from '../harness/databases/engines.ts'
import { freePort } from '../harness/connections/free-port.ts'
import { childrenOf } from '../harness/programs/process-tree.ts'
import { until } from '../harness/until.ts'
import { startPetstore } from '../harness/harness.ts'
import { petstore as petstoreCommand } from '../harness/programs/in-process-command.ts'
import { ask, connectTo, connectToFirstProcess, connectToWorker } from '../harness/connections/worker-connection.ts'

const TWO = { PETSTORE_WORKERS: '2' }
const HEARTBEAT_MS = 5000
const START_WITHIN_MS = 30_000

/** The workers that this process has started and that run. */
function workers(): number[] {
  return childrenOf(process.pid).filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('/src/worker.ts')
    } catch {
      return false
    }
  })
}

const OPTIONS = process.env['NODE_OPTIONS'] ?? ''

/** Lets workers that start from now on run this code first. */
function preload(code: string): void {
  process.env['NODE_OPTIONS'] = `${OPTIONS} --import data:text/javascript,${encodeURIComponent(code)}`
}

function preloadNothing(): void {
  process.env['NODE_OPTIONS'] = OPTIONS
}

const OTHER_VERSION = `import { registerHooks } from 'node:module'
  registerHooks({
    load(url, context, next) {
      const loaded = next(url, context)
      if (!url.endsWith('/contract/operations.ts')) return loaded
      return { ...loaded, source: String(loaded.source).replace(/(const VERSION = ').*'/, "$19.9.9'") }
    },
  })`

/** Ends the first `count` workers that start from now on, each at the next of these moments. */
function endStarting(count: number, marker: string): void {
  preload(`import { mkdirSync } from 'node:fs'
    const kill = () => process.kill(process.pid, 'SIGKILL')
    const moments = [
      kill,
      () => process.once('message', kill),
      () => process.on('message', (_message, socket) => socket && kill()),
      () => process.once('newListener', () => setTimeout(() => process.exit(7), 200)),
    ]
    for (let nth = 0; nth < ${count}; nth += 1)
      try {
        mkdirSync(${JSON.stringify(marker)} + nth)
        moments[nth % moments.length]()
        break
      } catch {}`)
}

async function assertIsFree(port: number): Promise<void> {
  const server = createServer().listen(port, '127.0.0.1')
  await once(server, 'listening')
  server.close()
}

describe('A worker', () => {
  afterEach(() => {
    preloadNothing()
    for (const worker of workers()) process.kill(worker, 'SIGKILL')
  })

  it('that hangs does not keep the service from stopping', async ({ mock }) => {
    const petstore = await startPetstore({ env: TWO })
    const [worker] = workers()
    process.kill(worker!, 'SIGSTOP')
    mock.timers.enable({ apis: ['setTimeout'] })
    const stopped = petstore[Symbol.asyncDispose]()
    mock.timers.tick(8000)
    await stopped
    assert.deepEqual(workers(), [])
  })

  it('that has not forgotten a key yet delays the answer to its revocation', async ({ mock }) => {
    await using petstore = await startPetstore({ env: TWO })
    const [worker] = workers()
    using toWorker = await connectToWorker(petstore.url)
    using toFirst = await connectToFirstProcess(petstore.url)
    const list = listWith(petstore.key)
    assert.deepEqual(await ask([toWorker, toFirst], list), [200, 200])
    process.kill(worker!, 'SIGSTOP')
    mock.timers.enable({ apis: ['setTimeout'] })
    const write = mock.method(petstore.store.accounts, 'revokeKey')
    let isRevoked = false
    const revoking = petstore.accounts.revokeKey(petstore.apiKey, 'console').then(() => (isRevoked = true))
    await write.mock.calls[0]!.result
    // The first process refuses the key, the worker would not, and the time limit stands still.
    toFirst.send(list)
    await once(toFirst.socket, 'data')
    const wasAnswered = isRevoked
    mock.timers.reset()
    process.kill(worker!, 'SIGCONT')
    assert.equal(wasAnswered, false)
    assert.equal((await toFirst.answer()).status, 401)
    await revoking
    assert.deepEqual(await ask([toWorker], list), [401])
  })

  it('that hangs delays a revocation for a few seconds at most, and then refuses the key', async () => {
    await using petstore = await startPetstore({ env: TWO })
    const [worker] = workers()
    using toWorker = await connectToWorker(petstore.url)
    const list = listWith(petstore.key)
    assert.deepEqual(await ask([toWorker], list), [200])
    process.kill(worker!, 'SIGSTOP')
    await petstore.accounts.revokeKey(petstore.apiKey, 'console')
    assert.deepEqual(workers(), [worker], 'the worker was not ended first')
    toWorker.send(list)
    process.kill(worker!, 'SIGCONT')
    assert.equal((await toWorker.answer()).status, 401)
  })

  it('that hangs only for a moment is not ended; one that goes on is replaced, no other one is, and no scrape fails', async ({
    mock,
  }) => {
    mock.timers.enable({ apis: ['setInterval'] })
    await using petstore = await startPetstore({ env: { PETSTORE_WORKERS: '3', PETSTORE_ADMIN_PORT: '0' } })
    const [worker, other] = workers()
    using connection = await connectTo(worker!, petstore.url)
    assert.deepEqual(await ask([connection], listWith(petstore.key)), [200])
    const lists = async () =>
      /operation="listPets",status="200"\} (\d)$/m.exec(await (await fetch(`${petstore.adminUrl}/metrics`)).text())?.[1]
    await until(async () => (await lists()) === '1', 'its request is counted')
    // A worker that is stopped while it writes that would keep the lock of the database.
    const written = () => petstore.store.accounts.callsSince([petstore.apiKey.id], 0)
    await until(async () => (await written()).length > 0, 'the use of the key is written')
    const ended = () => petstore.logged.filter(({ msg }) => msg === 'a worker hangs and is ended')
    process.kill(worker!, 'SIGSTOP')
    for (let pings = 0; pings < 2; pings += 1) mock.timers.tick(HEARTBEAT_MS)
    process.kill(worker!, 'SIGCONT')
    // Resolves when the worker has heard of it, and has answered the pings before that.
    await petstore.accounts.revokeKey(petstore.apiKey, 'console')
    mock.timers.tick(HEARTBEAT_MS)
    assert.deepEqual(ended(), [])
    process.kill(worker!, 'SIGSTOP')
    assert.equal(await lists(), '1')
    for (let pings = 0; pings < 3; pings += 1) {
      mock.timers.tick(HEARTBEAT_MS)
      // Resolves when the workers that do not hang have answered the ping before that.
      await petstore.accounts.revokeKey(petstore.apiKey, 'console')
    }
    const reported = ended().map(({ worker: pid }) => pid)
    assert.deepEqual(new Set(reported), new Set([worker]))
    await until(() => workers().length === 2 && !workers().includes(worker!), 'it is replaced')
    assert.ok(workers().includes(other!))
    assert.equal(await lists(), '1')
  })

  it('that ends during a drain without an answer disturbs nothing, and is not replaced after the stop', async ({
    mock,
  }) => {
    const petstore = await startPetstore({ env: TWO })
    const [worker] = workers()
    process.kill(worker!, 'SIGSTOP')
    await petstore.drain(0)
    mock.timers.enable({ apis: ['setTimeout'] })
    process.kill(worker!, 'SIGKILL')
    await until(() => petstore.logged.some(({ msg }) => String(msg).startsWith('a worker ended')), 'it has ended')
    await petstore[Symbol.asyncDispose]()
    mock.timers.tick(1000)
    assert.deepEqual(workers(), [])
  })

  it('that takes long to start is not taken for one that hangs; after half a minute it is ended, and another one serves', async ({
    mock,
  }) => {
    mock.timers.enable({ apis: ['setInterval'] })
    await using petstore = await startPetstore({ env: TWO })
    const [worker] = workers()
    const hasLogged = (message: string) => petstore.logged.some(({ msg }) => msg === message)
    preload('await new Promise(() => setInterval(() => {}, 60_000))')
    let giveUp: (() => void) | undefined
    const { setTimeout } = globalThis
    mock.method(globalThis, 'setTimeout', (fire: () => void, ms: number) =>
      ms === START_WITHIN_MS ? void (giveUp ??= fire) : setTimeout(fire, ms),
    )
    process.kill(worker!, 'SIGKILL')
    await until(() => giveUp !== undefined && workers().some((pid) => pid !== worker), 'a worker starts')
    preloadNothing()
    const starting = workers()
    for (let pings = 0; pings < 4; pings += 1) mock.timers.tick(HEARTBEAT_MS)
    assert.deepEqual(workers(), starting)
    assert.ok(!hasLogged('a worker hangs and is ended'))
    giveUp!()
    await until(() => hasLogged('a worker could not start'), 'it is given up')
    using connection = await connectToWorker(petstore.url)
    assert.deepEqual(await ask([connection], LIVEZ), [200])
  })

  it('whose start is refused is ended, and another one serves', async () => {
    await using petstore = await startPetstore({ env: { ...TWO, PETSTORE_ENVIRONMENT: 'staging' } })
    const [worker] = workers()
    await petstore.store.recordEnvironment('production', { instead: 'staging' })
    process.kill(worker!, 'SIGKILL')
    await until(() => petstore.logged.some(({ msg }) => msg === 'a worker could not start'), 'one is refused')
    await petstore.store.recordEnvironment('staging', { instead: 'production' })
    using connection = await connectToWorker(petstore.url)
    assert.deepEqual(await ask([connection], LIVEZ), [200])
  })

  it('of another version, after the program was replaced, does not serve; the others go on, and the log says what to do', async () => {
    await using petstore = await startPetstore({ env: TWO })
    preload(OTHER_VERSION)
    process.kill(workers()[0]!, 'SIGKILL')
    const isRefused = () =>
      petstore.logged.some(({ msg }) => msg === 'a worker ended; none replaces it before a restart')
    await until(isRefused, 'one is refused')
    assert.match(JSON.stringify(petstore.logged), /replaced by version 9\.9\.9: restart the service/)
    assert.equal((await petstore.call('/pets')).status, 200)
    assert.deepEqual(workers(), [])
  })

  it('that hangs while the service starts is replaced; the service goes on', async () => {
    await using database = await sqlite.newEmptyDatabase()
    const marker = JSON.stringify(join(database.url.slice('sqlite:'.length), '../hung'))
    preload(`import { existsSync, mkdirSync } from 'node:fs'
      if (!existsSync(${marker})) {
        mkdirSync(${marker})
        process.kill(process.pid, 'SIGSTOP')
      }`)
    await using petstore = await startPetstore({ database: database.url, env: { PETSTORE_WORKERS: '2' } })
    // Until its end is logged, the only worker may still be the one that was killed.
    const hasEnded = () => petstore.logged.some(({ msg }) => msg === 'a worker ended; another one replaces it')
    await until(() => hasEnded() && workers().length === 1, 'it is replaced')
    using connection = await connectTo(workers()[0]!, petstore.url)
    assert.deepEqual(await ask([connection], listWith(petstore.key)), [200])
  })

  it('that ends while it starts is replaced, also twice in a row and beside another; the service goes on', async () => {
    await using database = await sqlite.newEmptyDatabase()
    endStarting(4, join(database.url.slice('sqlite:'.length), '../ended'))
    await using petstore = await startPetstore({ database: database.url, env: { PETSTORE_WORKERS: '3' } })
    const ended = () => petstore.logged.filter(({ msg }) => msg === 'a worker ended; another one replaces it').length
    await until(() => ended() === 4 && workers().length === 2, 'all are replaced')
    for (const worker of workers()) {
      using connection = await connectTo(worker, petstore.url)
      assert.deepEqual(await ask([connection], listWith(petstore.key)), [200])
    }
  })

  const ENDS: [how: string, code: string, stopSignal: NodeJS.Signals | undefined, ended: [number, string]][] = [
    [
      'that ends while it starts by the signal of a stop does not make that stop a failure',
      "process.kill(process.pid, 'SIGINT')",
      'SIGINT',
      [0, ''],
    ],
    [
      'that always ends while it starts is a failure',
      'process.exit(7)',
      undefined,
      [1, 'petstore: 5 workers in a row ended within 5 s of their start; the log above says how.\n'],
    ],
  ]
  for (const [what, program, stopSignal, ended] of ENDS) {
    it(what, async () => {
      await using database = await sqlite.newEmptyDatabase()
      preload(program)
      const env = { ...TWO, PORT: String(await freePort()), DATABASE_URL: database.url }
      const stop = stopSignal && { stopSignal: async () => stopSignal }
      const { code, stderr } = await petstoreCommand(['serve'], { env, ...stop })
      assert.deepEqual([code, stderr], ended)
      assert.deepEqual(workers(), [])
    })
  }

  it('that cannot start fails the start of the service, with its message, which leaves no process and no port behind', async () => {
    await using database = await sqlite.newEmptyDatabase()
    const [port, adminPort] = [await freePort(), await freePort()]
    // The first of two workers is refused, the other one starts.
    const made = JSON.stringify(join(database.url.slice('sqlite:'.length), '../made'))
    preload(`import { mkdirSync } from 'node:fs'; let isFirst = true; try { mkdirSync(${made}) } catch { isFirst = false }
      ${OTHER_VERSION.replace('registerHooks({', 'if (isFirst) registerHooks({')}`)
    const ports = { PORT: String(port), PETSTORE_ADMIN_PORT: String(adminPort) }
    const env = { ...ports, PETSTORE_WORKERS: '3', DATABASE_URL: database.url }
    const { code, stderr } = await petstoreCommand(['serve'], { env })
    const message = 'A worker cannot start: the program was replaced by version 9.9.9: restart the service'
    assert.deepEqual([code, stderr], [1, `petstore: ${message}\n`])
    assert.deepEqual(workers(), [])
    for (const each of [port, adminPort]) await assertIsFree(each)
  })
})

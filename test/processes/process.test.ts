// The service as a process: its first run, its stop, its end without warning, and what it says meanwhile.
import assert from 'node:assert/strict'
import { existsSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { VERSION } from '../../src/contract/operations.ts'
import { sqlite } from '../harness/databases/engines.ts'
import { collect } from '../harness/programs/processes.ts'
import { childrenOf, isRunning } from '../harness/programs/process-tree.ts'
import { until } from '../harness/until.ts'
import { BIN, Folder, hasTerminal, makeKey, messages, type Served, serve } from '../harness/programs/command.ts'
import { create, get, LIVEZ, RawConnection, REX, untilRefused } from '../harness/connections/raw-http.ts'
import { startPetstore } from '../harness/harness.ts'
import { commandsOn, type InProcessOptions, stopOnceServing } from '../harness/programs/in-process-command.ts'

async function list({ url }: Served, key: string): Promise<{ id: number; name: string }[]> {
  const response = await fetch(`${url}/v1/pets?limit=100`, { headers: { Authorization: `Bearer ${key}` } })
  return (await response.json()) as { id: number; name: string }[]
}

/** Starts a service in this process, and stops it at once; resolves with its output. */
async function startedOnce(env: Record<string, string>, options: InProcessOptions = {}) {
  return commandsOn('sqlite::memory:').call(0, 'serve', {
    ...stopOnceServing(),
    ...options,
    env: { PORT: '0', ...env },
  })
}

describe('petstore serve', { concurrency: 3 }, () => {
  it('makes its database on the first run, says where it listens and who may sign up, and stops at once without a word of what it had begun', async () => {
    await using folder = await Folder.create([BIN])
    for (let times = 0; times < 2; times += 1) {
      const served = await serve(folder)
      assert.ok(existsSync(folder.at('data/petstore.db')))
      assert.match(served.url, /^http:\/\/127\.0\.0\.1:\d+$/)
      assert.partialDeepStrictEqual(served.lines[0], {
        database: join(realpathSync(folder.path), 'data/petstore.db'),
        environment: 'staging',
        signup: 'open (not set, and only this machine reaches the service)',
      })
      served.child.kill('SIGTERM')
      const { code, stderr } = await served.ended
      assert.deepEqual([code, stderr], [0, ''])
      assert.deepEqual(messages(served), ['listening', 'stopping: finishing open requests', 'stopped'])
    }
  })

  it('keeps nothing of production in memory', () =>
    commandsOn('sqlite::memory:').refused(
      1,
      'serve --port 0',
      'petstore: Production is not served from a database in memory, which ends with the process. Name a file, or a PostgreSQL database.\n',
      { env: { PETSTORE_ENVIRONMENT: 'production' }, ...stopOnceServing() },
    ))

  it('suggests on a terminal commands for the database that it was started with, and no metrics where there are none', async () => {
    await using database = await sqlite.newEmptyDatabase()
    const env = { DATABASE_URL: database.url, PETSTORE_SIGNUP: 'closed', NO_COLOR: '1' }
    const { stdout } = await startedOnce(env, { isTTY: true })
    for (const command of ['account create EMAIL', 'key create --account EMAIL --name NAME'])
      assert.ok(stdout.includes(`  petstore ${command} --database ${database.url}\n`), stdout)
    assert.doesNotMatch(stdout, /Metrics|undefined/)
  })

  it('says where its data is without the password of the database, on a terminal, where it offers no key then, and in the log', async () => {
    for (const typed of ['', undefined]) {
      const options = typed === undefined ? {} : { typed }
      const { stdout, stderr } = await startedOnce({ DATABASE_URL: 'postgres://me:hunter2@127.0.0.1:1/none' }, options)
      assert.match(stdout, /PostgreSQL at 127\.0\.0\.1:1\/none/)
      assert.doesNotMatch(stdout + stderr, /hunter2|curl/)
    }
  })

  it('says why sign-up is open or closed where nobody has set it, and only there', async () => {
    const signup = async (env: Record<string, string>) => {
      const lines = (await startedOnce(env)).stdout.trimEnd().split('\n')
      return lines.map((line) => JSON.parse(line) as { signup?: string }).find((line) => 'signup' in line)?.signup
    }
    assert.equal(await signup({ HOST: '0.0.0.0', PETSTORE_SIGNUP: 'open' }), 'open')
    assert.equal(await signup({ PETSTORE_SIGNUP: 'closed' }), 'closed')
    assert.equal(await signup({ HOST: '0.0.0.0' }), 'closed (not set: open it with --signup open)')
  })

  it('offers a key on a terminal only to a person of this machine, once, and not in production; without colours if asked', async () => {
    await using database = await sqlite.newEmptyDatabase()
    const start = async (env: Record<string, string>, options: InProcessOptions = { typed: '' }) =>
      (await startedOnce({ DATABASE_URL: database.url, ...env }, options)).stdout
    await using ofProduction = await sqlite.newDatabase()
    const production = await start({
      DATABASE_URL: ofProduction.url,
      PETSTORE_ENVIRONMENT: 'production',
      NO_COLOR: '1',
    })
    assert.ok(!production.includes('curl') && !production.includes('\u001B['), JSON.stringify(production))
    const stopping = /\d\d:\d\d:\d\d {2}notice {2}stopping: finishing open requests {2}signal=SIGINT\n/
    assert.match(production, stopping, 'short lines for people')
    assert.ok(!(await start({}, { isTTY: true })).includes('curl'), 'nobody sits at that terminal')
    // As in a container, which has a terminal too, and keeps what it prints. For `::`, see src/http/reach.test.ts.
    assert.ok(!(await start({ HOST: '0.0.0.0' })).includes('curl'))
    const closed = await start({ TERM: 'dumb', PETSTORE_SIGNUP: 'closed' })
    assert.ok(!closed.includes('\u001B['), JSON.stringify(closed))
    assert.match(closed, /Sign-up +closed: [^]*Get a key +petstore account create EMAIL [^]*curl/)
    assert.ok(!(await start({})).includes('curl'), 'who has an account has keys of their own')
  })

  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    it(`stops on ${signal}, also if that comes twice, and opens no debugger before: not ready, what runs is finished and stored, exit code 0`, async () => {
      await using folder = await Folder.create([BIN])
      const { key } = await makeKey(folder)
      const served = await serve(folder, { env: { PETSTORE_ADMIN_PORT: '0' } })
      using running = new RawConnection(served.url)
      using idle = new RawConnection(served.url)
      using probe = new RawConnection(served.url)
      await idle.ask(LIVEZ)
      // Each comes with a whole request before it: when that is answered, the beginning of the next one was read.
      await running.ask(LIVEZ + create(key).slice(0, -10))
      served.child.kill('SIGUSR1')
      await probe.ask(LIVEZ + get('/readyz').slice(0, -2))

      const started = performance.now()
      served.child.kill(signal)
      // To the process and to its group: the second one does not cut the stop short.
      await new Promise((resolve) => setTimeout(resolve, 20))
      served.child.kill(signal)
      await untilRefused(served.url)
      await idle.closed()
      probe.send('\r\n')
      const ready = await probe.answer()
      assert.equal(ready.status, 503)
      assert.equal(ready.headers.get('retry-after'), '1')
      assert.match(ready.body, /The service is stopping/)
      await probe.closed()
      running.send(REX.slice(-10))
      const made = await running.answer()
      assert.equal(made.status, 201)
      assert.equal(made.headers.get('connection'), 'close')

      const { code, stderr } = await served.ended
      assert.deepEqual([code, stderr], [0, ''])
      assert.ok(performance.now() - started < 10_000)
      assert.deepEqual(messages(served), ['listening', 'stopping: finishing open requests', 'stopped'])
      const again = await serve(folder)
      const [pet, ...others] = await list(again, key)
      assert.deepEqual([pet?.name, others], ['Rex', []])
    })
  }

  it('cuts off a client that never finishes, and still ends with 0 within 10 seconds', async () => {
    await using folder = await Folder.create([BIN])
    const { key } = await makeKey(folder)
    const served = await serve(folder)
    using slow = new RawConnection(served.url)
    using slower = new RawConnection(served.url)
    await slow.ask(LIVEZ + create(key).slice(0, -10))
    await slower.ask(`${LIVEZ}GET /v1/pe`)
    const started = performance.now()
    served.child.kill('SIGTERM')
    assert.equal((await served.ended).code, 0)
    assert.ok(performance.now() - started < 10_000)
  })

  it('says which port is taken, the one of the interface or of the metrics, and which address is not there', async () => {
    await using other = await startPetstore()
    const { port } = new URL(other.url)
    const cannot = (options: string, message: string) =>
      commandsOn('sqlite::memory:').refused(1, `serve ${options}`, `petstore: Cannot listen on ${message}\n`)
    const inUse = `127.0.0.1 port ${port}: it is in use; stop the other program or choose another with`
    await cannot(`--port ${port}`, `${inUse} --port.`)
    await cannot(`--port 0 --admin-port ${port}`, `${inUse} --admin-port.`)
    const nowhere = '192.0.2.1 port 0: this machine does not have that address; choose another with --host.'
    await cannot('--port 0 --host 192.0.2.1', nowhere)
    const env = { npm_lifecycle_event: 'start' }
    const { stderr } = await commandsOn('sqlite::memory:').call(1, `serve --port ${port}`, { env })
    assert.equal(stderr, `petstore: Cannot listen on ${inUse} npm start -- --port.\n`)
  })
})

if (hasTerminal)
  describe('petstore serve on a terminal', () => {
    /** Runs it under script(1), which gives it a terminal, and stops it as Ctrl+C does. */
    async function onTerminal(folder: Folder, env: Record<string, string>): Promise<string> {
      const child = folder.startOnTerminal('serve', { PORT: '0', ...env })
      const ended = collect(child)
      let seen = ''
      await new Promise<void>((resolve) => {
        child.stdout.on('data', (text: Buffer) => {
          seen += text.toString()
          if (/Get a key[^]*\n\r?\n$/.test(seen)) resolve()
        })
        void ended.then(() => resolve())
      })
      child.stdin.write('\u0003')
      assert.equal((await ended).code, 0)
      return seen.replaceAll('\r', '')
    }

    it('closes its database in order where the terminal is closed', async () => {
      await using folder = await Folder.create([BIN])
      const child = folder.startOnTerminal('serve', { PORT: '0' })
      child.stdout.on('error', () => {})
      let seen = ''
      await new Promise<void>((resolve) => {
        child.stdout.on('data', (text: Buffer) => /Get a key/.test((seen += text.toString())) && resolve())
      })
      const [service] = childrenOf(child.pid!)
      assert.ok(existsSync(folder.at('data/petstore.db-wal')))
      // With it ends the terminal.
      child.kill('SIGKILL')
      await until(() => !isRunning(service!))
      assert.ok(!existsSync(folder.at('data/petstore.db-wal')))
    })

    it('greets in aligned lines, with a curl line that works, on the first run', async () => {
      await using folder = await Folder.create([BIN])
      const text = await onTerminal(folder, { PETSTORE_ADMIN_PORT: '0' })
      assert.ok(text.includes(`\n  Petstore ${VERSION}, staging\n`), text)
      assert.ok(text.includes('  \u001B[36mAPI'), text)
      assert.match(text, /API +\S+ {2}http:\/\/127\.0\.0\.1:\d+\/v1\n/)
      assert.match(text, /Metrics +\S+ {2}http:\/\/127\.0\.0\.1:\d+\/metrics\n/)
      assert.ok(text.includes(`  ${realpathSync(folder.path)}/data/petstore.db\n`), text)
      assert.match(text, /Sign-up +\S+ {2}open: /)
      const curl = /curl -H "Authorization: Bearer (pets_test_\w+)" http:\/\/127\.0\.0\.1:\d+\/v1\/pets\n/
      const key = curl.exec(text)?.[1] ?? assert.fail(text)
      const served = await serve(folder)
      assert.deepEqual(await list(served, key), [])
      const [{ expiresAt }] = await folder.commands.json<[{ expiresAt: string }]>('key list')
      const ends = Date.parse(expiresAt) - 7 * 86_400_000
      assert.ok(Math.abs(ends - Date.now()) < 60_000, `it ends in 7 days: ${expiresAt}`)
    })
  })

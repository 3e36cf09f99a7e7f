// The service as a process: its first run, its stop, its end without warning, and what it says meanwhile.
import assert from 'node:assert/strict'
import { existsSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { sqlite } from '../assurance/harness/engines.ts'
import { collect } from '../assurance/harness/processes.ts'
import { BIN, Folder, hasTerminal, makeKey, messages, type Served, serve } from './command.ts'
import { createHead, RawConnection, untilRefused } from '../assurance/harness/raw-http.ts'
import { petstore } from './in-process-command.ts'

const REX = '{"name":"Rex","categoryId":1}'
const HOST = 'Host: pets.example\r\n'

async function list({ url }: Served, key: string): Promise<{ id: number; name: string }[]> {
  const response = await fetch(`${url}/v1/pets?limit=100`, { headers: { Authorization: `Bearer ${key}` } })
  return (await response.json()) as { id: number; name: string }[]
}

describe('petstore serve', { concurrency: 3 }, () => {
  it('makes its database on the first run, and says where it listens and who may sign up', async () => {
    await using folder = await Folder.create([BIN])
    const served = await serve(folder)
    assert.ok(existsSync(join(folder.path, 'data/petstore.db')))
    assert.match(served.url, /^http:\/\/127\.0\.0\.1:\d+$/)
    const [line] = served.lines
    assert.equal(line?.['database'], join(realpathSync(folder.path), 'data/petstore.db'))
    assert.deepEqual(
      [line?.['environment'], line?.['signup']],
      ['staging', 'open (not set, and only this machine reaches the service)'],
    )
    served.child.kill('SIGTERM')
    const { code, stderr } = await served.ended
    assert.deepEqual([code, stderr], [0, ''])
  })

  it('suggests on a terminal no command for a database in memory, which none reaches, but what works', async () => {
    const greeting = async (signup: string) => {
      const env = { PORT: '0', DATABASE_URL: 'sqlite::memory:', PETSTORE_SIGNUP: signup, NO_COLOR: '1' }
      return (await petstore(['serve'], { env, isTTY: true, stopSignal: async () => 'SIGINT' })).stdout
    }
    assert.match(await greeting('open'), /Get a key +create an account at http:.*, then generate a key\n/)
    assert.match(
      await greeting('closed'),
      /Sign-up +closed, and no command.*: for accounts, start with --signup open, or with a database in a file, --database sqlite:PATH\n\n/,
    )
  })

  it('suggests on a terminal commands for the database that it was started with, and no metrics where there are none', async () => {
    await using database = await sqlite.newDatabase()
    const env = { PORT: '0', PETSTORE_SIGNUP: 'closed', NO_COLOR: '1' }
    const words = ['serve', '--database', database.url]
    const { stdout } = await petstore(words, { env, isTTY: true, stopSignal: async () => 'SIGINT' })
    for (const command of ['account create EMAIL', 'key create --account EMAIL --name NAME'])
      assert.ok(stdout.includes(`  petstore ${command} --database ${database.url}\n`), stdout)
    assert.doesNotMatch(stdout, /Metrics|undefined/)
  })

  it('says where its data is without the password of the database, on a terminal and in the log', async () => {
    const env = { PORT: '0', DATABASE_URL: 'postgres://me:hunter2@127.0.0.1:1/none' }
    for (const isTTY of [true, false]) {
      const { stdout, stderr } = await petstore(['serve'], { env, isTTY, stopSignal: async () => 'SIGINT' })
      assert.match(stdout, /PostgreSQL at 127\.0\.0\.1:1\/none/)
      assert.ok(!(stdout + stderr).includes('hunter2'), stdout)
    }
  })

  it('says why sign-up is open or closed where nobody has set it, and only there', async () => {
    const signup = async (settings: Record<string, string>) => {
      const env = { PORT: '0', DATABASE_URL: 'sqlite::memory:', ...settings }
      const { stdout } = await petstore(['serve'], { env, stopSignal: async () => 'SIGTERM' })
      const lines = stdout.trimEnd().split('\n')
      return lines.map((line) => JSON.parse(line) as { signup?: string }).find((line) => 'signup' in line)?.signup
    }
    assert.equal(await signup({ HOST: '0.0.0.0', PETSTORE_SIGNUP: 'open' }), 'open')
    assert.equal(await signup({ PETSTORE_SIGNUP: 'closed' }), 'closed')
    assert.equal(await signup({ HOST: '0.0.0.0' }), 'closed (not set: open it with --signup open)')
  })

  it('stops at once after its start without a word of what it had begun', async () => {
    await using folder = await Folder.create([BIN])
    for (let times = 0; times < 3; times += 1) {
      const served = await serve(folder)
      served.child.kill('SIGTERM')
      assert.equal((await served.ended).code, 0)
      assert.deepEqual(messages(served), ['listening', 'stopping: finishing open requests', 'stopped'])
    }
  })

  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    it(`stops on ${signal}: not ready, what runs is finished and stored, exit code 0`, async () => {
      await using folder = await Folder.create([BIN])
      const { key } = await makeKey(folder)
      const served = await serve(folder, { env: { PETSTORE_ADMIN_PORT: '0' } })
      using running = new RawConnection(served.url)
      using idle = new RawConnection(served.url)
      using probe = new RawConnection(served.url)
      idle.send(`GET /livez HTTP/1.1\r\n${HOST}\r\n`)
      await idle.answer()
      running.send(createHead(key, REX) + REX.slice(0, 10))
      probe.send(`GET /readyz HTTP/1.1\r\n${HOST}`)
      await new Promise((resolve) => setTimeout(resolve, 100))

      const started = performance.now()
      served.child.kill(signal)
      await untilRefused(served.url)
      await idle.closed()
      probe.send('\r\n')
      const ready = await probe.answer()
      assert.equal(ready.status, 503)
      assert.equal(ready.headers.get('retry-after'), '1')
      assert.match(ready.body, /The service is stopping/)
      await probe.closed()
      running.send(REX.slice(10))
      const made = await running.answer()
      assert.equal(made.status, 201)
      assert.equal(made.headers.get('connection'), 'close')

      const { code, stderr } = await served.ended
      assert.deepEqual([code, stderr], [0, ''])
      assert.ok(performance.now() - started < 10_000)
      assert.deepEqual(messages(served), ['listening', 'stopping: finishing open requests', 'stopped'])
      const again = await serve(folder)
      assert.deepEqual(
        (await list(again, key)).map(({ name }) => name),
        ['Rex'],
      )
    })
  }

  it('is not cut short in its stop by a signal that comes twice, to the process and to its group', async () => {
    await using folder = await Folder.create([BIN])
    const { key } = await makeKey(folder)
    const served = await serve(folder)
    using running = new RawConnection(served.url)
    running.send(createHead(key, REX, 'Expect: 100-continue\r\n'))
    assert.equal((await running.answer()).status, 100)
    served.child.kill('SIGTERM')
    await new Promise((resolve) => setTimeout(resolve, 20))
    served.child.kill('SIGTERM')
    await untilRefused(served.url)
    running.send(REX)
    assert.equal((await running.answer()).status, 201)
    assert.equal((await served.ended).code, 0)
  })

  it('cuts off a client that never finishes, and still ends with 0 within 10 seconds', async () => {
    await using folder = await Folder.create([BIN])
    const { key } = await makeKey(folder)
    const served = await serve(folder)
    using slow = new RawConnection(served.url)
    using slower = new RawConnection(served.url)
    slow.send(createHead(key, REX) + REX.slice(0, 10))
    slower.send('GET /v1/pe')
    await new Promise((resolve) => setTimeout(resolve, 100))
    const started = performance.now()
    served.child.kill('SIGTERM')
    assert.equal((await served.ended).code, 0)
    assert.ok(performance.now() - started < 10_000)
  })

  it('loses no animal that it acknowledged, killed in the middle of creates', async () => {
    await using folder = await Folder.create([BIN])
    const { key } = await makeKey(folder)
    const served = await serve(folder)
    const acknowledged = new Map<number, string>()
    const adding = Array.from({ length: 8 }, async (_, worker) => {
      for (let count = 0; ; count += 1) {
        const name = `worker ${worker} pet ${count}`
        const response = await fetch(`${served.url}/v1/pets`, {
          method: 'POST',
          body: JSON.stringify({ name, categoryId: 1 }),
          headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json', 'Idempotency-Key': name },
        })
        if (response.status === 201) acknowledged.set(((await response.json()) as { id: number }).id, name)
      }
    })
    while (acknowledged.size < 60) await new Promise((resolve) => setTimeout(resolve, 10))
    served.child.kill('SIGKILL')
    await Promise.allSettled(adding)
    assert.equal((await served.ended).signal, 'SIGKILL')

    const again = await serve(folder)
    const there = new Map<number, string>()
    for (let next: string | undefined = '/v1/pets?limit=100'; next !== undefined;) {
      const response = await fetch(again.url + next, { headers: { Authorization: `Bearer ${key}` } })
      for (const { id, name } of (await response.json()) as { id: number; name: string }[]) there.set(id, name)
      next = /^<([^>]+)>/.exec(response.headers.get('link') ?? '')?.[1]
    }
    for (const [id, name] of acknowledged) assert.equal(there.get(id), name)
    assert.equal(new Set(there.values()).size, there.size, 'and no key made two')
  })

  it('says which port is taken, the one of the interface or of the metrics', async () => {
    await using folder = await Folder.create([BIN])
    const { port } = new URL((await serve(folder)).url)
    const second = await folder.run(['serve', '--port', port])
    assert.deepEqual([second.code, second.stdout], [1, ''])
    assert.equal(
      second.stderr,
      `petstore: Cannot listen on 127.0.0.1 port ${port}: it is in use; stop the other program or choose another with --port.\n`,
    )
    const admin = await folder.run(['serve', '--port', '0', '--admin-port', port])
    assert.equal(admin.code, 1)
    assert.match(
      admin.stderr,
      new RegExp(`Cannot listen on 127.0.0.1 port ${port}: it is in use; .* with --admin-port\\.`),
    )
    const nowhere = await folder.run(['serve', '--port', '0', '--host', '192.0.2.1'])
    assert.equal(
      nowhere.stderr,
      'petstore: Cannot listen on 192.0.2.1 port 0: this machine does not have that address; choose another with --host.\n',
    )
  })

  it('logs one line a request where that is asked for, none by default, and never a secret', async () => {
    for (const level of ['debug', 'notice']) {
      await using folder = await Folder.create([BIN])
      const { key } = await makeKey(folder)
      const served = await serve(folder, { env: { PETSTORE_LOG_LEVEL: level } })
      for (const path of ['/v1/pets', `/v1/pets/${key}`, `/v1/pets?key=${key}`]) {
        await fetch(served.url + path, { headers: { Authorization: `Bearer ${key}` } })
      }
      using broken = new RawConnection(served.url)
      broken.send('nonsense\r\n\r\n')
      await broken.answer()
      served.child.kill('SIGTERM')
      const { stdout, stderr } = await served.ended
      assert.equal(served.lines.filter(({ msg }) => msg === 'request').length, level === 'notice' ? 0 : 4)
      assert.ok(!(stdout + stderr).includes(key))
    }
  })
})

if (hasTerminal)
  describe('petstore serve on a terminal', () => {
    /** Runs it under script(1), which gives it a terminal, and stops it as Ctrl+C does. */
    async function onTerminal(folder: Folder, env: Record<string, string>, input = ''): Promise<string> {
      const child = folder.startOnTerminal(`serve ${input}`, { PORT: '0', ...env })
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

    it('greets in aligned lines, with a curl line that works, on the first run', async () => {
      await using folder = await Folder.create([BIN])
      const text = await onTerminal(folder, { PETSTORE_ADMIN_PORT: '0' })
      assert.match(text, /\n {2}Petstore 1\.0\.0, staging\n/)
      assert.ok(text.includes('  \u001B[36mAPI'), text)
      assert.match(text, /API +\S+ {2}http:\/\/127\.0\.0\.1:\d+\/v1\n/)
      assert.match(text, /Metrics +\S+ {2}http:\/\/127\.0\.0\.1:\d+\/metrics\n/)
      assert.ok(text.includes(`  ${realpathSync(folder.path)}/data/petstore.db\n`), text)
      assert.match(text, /Sign-up +\S+ {2}open: /)
      const key = /curl -H "Authorization: Bearer (pets_test_\w+)" http:\/\/127\.0\.0\.1:\d+\/v1\/pets\n/.exec(
        text,
      )?.[1]
      assert.ok(key, text)
      const served = await serve(folder)
      assert.deepEqual(await list(served, key), [])
      const [{ expiresAt }] = JSON.parse((await folder.run(['key', 'list', '--json'])).stdout) as [
        { expiresAt: string },
      ]
      assert.ok(
        Math.abs(Date.parse(expiresAt) - Date.now() - 7 * 86_400_000) < 60_000,
        `it ends in 7 days: ${expiresAt}`,
      )
    })

    it('greets without a key while the database is unavailable, and goes on', async () => {
      await using folder = await Folder.create([BIN])
      const text = await onTerminal(folder, { DATABASE_URL: 'postgres://me@127.0.0.1:1/none' })
      assert.match(text, /API +\S+ {2}http:\/\/127\.0\.0\.1:\d+\/v1\n/)
      assert.ok(!text.includes('curl'), text)
    })

    it('uses no colour with NO_COLOR or on a dumb terminal, and offers no key in production or a second time', async () => {
      await using folder = await Folder.create([BIN])
      const production = await onTerminal(folder, { PETSTORE_ENVIRONMENT: 'production', NO_COLOR: '1' })
      assert.ok(!production.includes('\u001B['), JSON.stringify(production))
      assert.ok(!production.includes('curl'))
      assert.match(
        production,
        /\d\d:\d\d:\d\d {2}notice {2}stopping: finishing open requests {2}signal=SIGINT\n/,
        'short lines for people',
      )
      await folder.run(['environment', 'set', 'staging', '--yes'])
      assert.ok(!(await onTerminal(folder, {}, '</dev/null')).includes('curl'), 'nobody sits at that terminal')
      for (const address of ['0.0.0.0', '::']) {
        assert.ok(
          !(await onTerminal(folder, { HOST: address })).includes('curl'),
          'a container has a terminal too, and keeps what it prints',
        )
      }
      const closed = await onTerminal(folder, { TERM: 'dumb', PETSTORE_SIGNUP: 'closed' })
      assert.ok(!closed.includes('\u001B['), JSON.stringify(closed))
      assert.match(
        closed,
        /Sign-up +closed: [^]*Get a key +petstore account create EMAIL\n +petstore key create --account EMAIL --name NAME\n[^]*curl/,
      )
      assert.ok(!(await onTerminal(folder, {})).includes('curl'))
      await using inUse = await Folder.create([BIN])
      await makeKey(inUse)
      assert.ok(!(await onTerminal(inUse, {})).includes('curl'), 'whoever has an account has keys of their own')
    })
  })

// Restarts that nobody notices: the drain after SIGTERM, a stop that always ends, and a socket that outlives the process.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { constants } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { restartAlone } from '../harness/failures/restart-alone.ts'
import { BIN, Folder, makeKey, messages, type Served, serve } from '../harness/programs/command.ts'
import { startCuttingProxy } from '../harness/databases/cutting-proxy.ts'
import { postgres } from '../harness/databases/engines.ts'
import { create, get, RawConnection, REX } from '../harness/connections/raw-http.ts'
import { until } from '../harness/until.ts'

function logs(served: Served, message: string): Promise<void> {
  return until(() => messages(served).includes(message), message)
}

/** Whether a process has a handler for a signal. */
function handles(pid: number, signal: NodeJS.Signals): boolean {
  const [, mask] = /^SigCgt:\s*([0-9a-f]+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))!
  return ((BigInt(`0x${mask}`) >> BigInt(constants.signals[signal] - 1)) & 1n) === 1n
}

describe('A stop with a drain', { concurrency: 3 }, () => {
  it('is not ready from the signal on, serves everything on old and new connections, and retires each with its answer', async () => {
    await using folder = await Folder.create()
    const { key } = await makeKey(folder)
    const served = await serve(folder, { env: { PETSTORE_DRAIN_SECONDS: '10' } })
    const idle = Array.from({ length: 4 }, () => new RawConnection(served.url))
    for (const connection of idle) connection.send(get('/livez'))
    for (const connection of idle) assert.equal((await connection.answer()).headers.get('connection'), 'keep-alive')

    served.child.kill('SIGTERM')
    await logs(served, 'draining: not ready, still serving')
    const requests = [create(key), get('/readyz'), get('/docs'), get('/v1/pets')]
    for (const connections of [idle, requests.map(() => new RawConnection(served.url))]) {
      for (const [index, connection] of connections.entries()) connection.send(requests[index]!)
      const answers = await Promise.all(connections.map((connection) => connection.answer()))
      assert.deepEqual(
        answers.map(({ status }) => status),
        [201, 503, 200, 401],
      )
      assert.deepEqual(new Set(answers.map(({ headers }) => headers.get('connection'))), new Set(['close']))
      for (const connection of connections) await connection.closed()
    }
    const { code, stderr } = await served.ended
    assert.deepEqual([code, stderr], [0, ''])
    assert.deepEqual(messages(served), [
      'listening',
      'draining: not ready, still serving',
      'stopping: finishing open requests',
      'stopped',
    ])
  })

  for (const [first, second] of [
    ['SIGTERM', 'SIGTERM'],
    ['SIGHUP', 'SIGINT'],
  ] as const) {
    it(`begins with ${first}, and ends at once with a later ${second}`, async () => {
      await using folder = await Folder.create()
      const served = await serve(folder, { env: { PETSTORE_DRAIN_SECONDS: '60' } })
      served.child.kill(first)
      await logs(served, 'draining: not ready, still serving')
      // One that comes with the first counts as the same.
      await until(() => !handles(served.child.pid!, second), 'the next one ends the process')
      assert.ok(handles(served.child.pid!, 'SIGHUP'), 'a terminal that is closed may send several')
      served.child.kill(second)
      assert.equal((await served.ended).signal, second)
    })
  }

  it('finishes its requests also when the reader of its output leaves meanwhile', async () => {
    await using folder = await Folder.create()
    const { key } = await makeKey(folder)
    // Longer than a second signal counts as the first.
    const served = await serve(folder, { env: { PETSTORE_DRAIN_SECONDS: '6' } })
    served.child.kill('SIGTERM')
    await logs(served, 'draining: not ready, still serving')
    served.child.stdout!.destroy()
    using running = new RawConnection(served.url)
    running.send(create(key).slice(0, -5))
    using idle = new RawConnection(served.url)
    // Closed with the listener, when the drain is over and the next line cannot be written.
    await idle.closed(20_000)
    running.send(REX.slice(-5))
    assert.equal((await running.answer()).status, 201)
    assert.equal((await served.ended).code, 0)
  })

  it('ends in time and with 0 while the database answers nothing', async () => {
    await using folder = await Folder.create()
    await using database = await postgres.newEmptyDatabase()
    await using proxy = await startCuttingProxy(database.url)
    const { key } = await makeKey(folder, { DATABASE_URL: database.url })
    const served = await serve(folder, { env: { DATABASE_URL: `${proxy.url}?statement_timeout=60000` } })
    using running = new RawConnection(served.url)
    running.send(create(key))
    assert.equal((await running.answer()).status, 201)
    proxy.holdStatements()
    running.send(create(key))
    await new Promise((resolve) => setTimeout(resolve, 100))
    const started = performance.now()
    served.child.kill('SIGTERM')
    assert.equal((await served.ended).code, 0)
    assert.ok(performance.now() - started < 20_000)
    assert.ok(messages(served).includes('stopped'))
  })
})

const fdOf = (server: Server) => (server as unknown as { _handle: { fd: number } })._handle.fd

describe('An inherited socket (LISTEN_PID, LISTEN_FDS)', () => {
  for (const [title, address, signup, program] of [
    ['decides that the service is at home', '127.0.0.1', 'open', undefined],
    ['decides that the service is not at home', '0.0.0.0', 'closed', undefined],
    ['is passed on by the program that npm installs', '127.0.0.1', 'open', [process.execPath, `${BIN}.js`]],
  ] as const) {
    it(`is listened on, whatever HOST and PORT say, and ${title}`, async () => {
      await using folder = await Folder.create(program)
      const holder = createServer().listen(0, address)
      await once(holder, 'listening')
      const { port } = holder.address() as { port: number }
      const env = { HOST: address === '0.0.0.0' ? '127.0.0.1' : '0.0.0.0' }
      const served = await serve(folder, { socket: fdOf(holder), env })
      holder.close()
      assert.equal(served.url, `http://${address}:${port}`)
      assert.match(String(served.lines[0]!['signup']), new RegExp(`^${signup} `))
      assert.equal((await fetch(`http://127.0.0.1:${port}/livez`)).status, 200)
    })
  }

  it('that was passed to another process is ignored', async () => {
    await using folder = await Folder.create()
    const served = await serve(folder, { env: { LISTEN_PID: '1', LISTEN_FDS: '1' } })
    assert.match(served.url, /^http:\/\/127\.0\.0\.1:\d+$/)
  })

  it('that is no socket, no TCP socket, or one of several, is refused with the reason', async () => {
    await using folder = await Folder.create()
    const file = openSync('/dev/null', 'r')
    const refused = await folder.run(['serve'], { socket: file })
    const several = await folder.run(['serve'], { socket: file, env: { LISTEN_FDS: '2' } })
    closeSync(file)
    const unix = createServer().listen(join(folder.path, 'socket'))
    await once(unix, 'listening')
    const local = await folder.run(['serve'], { socket: fdOf(unix) })
    unix.close()
    assert.deepEqual([refused.code, several.code, local.code], [1, 1, 1])
    assert.match(local.stderr, /\(LISTEN_FDS\): it is not a TCP socket\.\n$/)
    assert.match(refused.stderr, /^petstore: Cannot listen on the socket that was passed on \(LISTEN_FDS\): .+\.\n$/)
    assert.equal(
      several.stderr,
      'petstore: Cannot listen on the socket that was passed on (LISTEN_FDS): there are 2 of them, and the service takes one.\n',
    )
  })

  const plan = { restarts: 2, drainSeconds: 1, clients: 4, seed: 1 }

  it('makes restarts break no request', async () => {
    await using folder = await Folder.create()
    const { answered, broken, lost, doubled } = await restartAlone({ ...plan, folder: folder.path, signal: 'SIGTERM' })
    assert.deepEqual({ broken, lost, doubled }, { broken: [], lost: [], doubled: [] })
    assert.ok(answered > 50)
  })
})

// A first process that hangs, here suspended: its workers go on, and say that it hangs.
import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { describe, it } from 'node:test'
import { get, list as listWith, LIVEZ, RawConnection } from '../harness/connections/raw-http.ts'
import { childrenOf } from '../harness/programs/process-tree.ts'
import { until } from '../harness/until.ts'
import { Folder, serve } from '../harness/programs/command.ts'
import { ConsoleClient } from '../harness/connections/console-client.ts'
import { PASSWORD } from '../harness/harness.ts'
import { ask, askForAll, close, connectionsTo } from '../harness/connections/worker-connection.ts'

const EMAIL = 'keeper@example.com'

/**
 * Suspends a process, unless that catches it amid a write: it does its chores right after the start, and nobody else could write
 * to a SQLite file whose lock it keeps.
 */
function isSuspendedIdle(pid: number, path: string): boolean {
  process.kill(pid, 'SIGSTOP')
  try {
    using db = new DatabaseSync(path)
    db.exec('BEGIN IMMEDIATE; ROLLBACK')
    return true
  } catch {
    process.kill(pid, 'SIGCONT')
    return false
  }
}

describe('A first process that hangs', () => {
  it('holds up no connection, request, sign-in or revocation of its workers, and is reported until it answers again', async () => {
    await using folder = await Folder.create()
    const command = async (words: readonly string[], input = '') =>
      (await folder.runInProcess(words, { env: { PETSTORE_ENVIRONMENT: 'staging' }, input })).stdout
    await command(['account', 'create', EMAIL, '--password-stdin'], PASSWORD)
    const created = await command(['key', 'create', '--account', EMAIL, '--name', 'shop', '--json'])
    const { id, key } = JSON.parse(created) as { id: string; key: string }
    const env = { PETSTORE_WORKERS: '3', PETSTORE_RATE_LIMIT: '2000/600' }
    const { child, url, lines } = await serve(folder, { env })
    assert.equal(childrenOf(child.pid!).length, 2)
    const hasLogged = (words: string) => lines.some(({ msg }) => String(msg).startsWith(words))

    await until(() => isSuspendedIdle(child.pid!, folder.at('data/petstore.db')), 'it hangs outside of a write')
    // Its workers notice after ten seconds at the earliest.
    const connections = connectionsTo({ url }, 100)
    const all = (request: string, status: number) => askForAll(connections, request, status)
    await all(get('/readyz'), 200)
    const waits: number[] = []
    for (let nth = 0; nth < 21; nth += 1) {
      const started = performance.now()
      using next = new RawConnection(url)
      assert.equal((await next.ask(listWith(key))).status, 200)
      waits.push(performance.now() - started)
    }
    // The median: the machine may be busy for a moment.
    assert.ok(
      waits.toSorted((one, other) => one - other)[10]! < 1000,
      `new connections waited for ${waits.join(', ')} ms`,
    )
    const list = listWith(key)
    await all(list, 200)
    const client = new ConsoleClient(url)
    assert.equal((await client.signIn(EMAIL, PASSWORD)).status, 303)
    const page = `/keys/${id}/revoke`
    assert.equal((await client.submit(page, page)).status, 303)
    await all(list, 401)

    await until(async () => (await ask(connections, get('/readyz'))).every((status) => status === 503), 'all notice')
    // One worker may have accepted all connections above, and the other notice later.
    const says = async (words: RegExp) => words.test(await (await fetch(`${url}/readyz`)).text())
    await until(() => says(/The first process of the service does not answer\./), 'it is said why')
    assert.ok(hasLogged('the first process does not answer: not ready;'))
    await all(LIVEZ, 200)

    process.kill(child.pid!, 'SIGCONT')
    await until(async () => (await ask(connections, get('/readyz'))).every((status) => status === 200), 'it is back')
    assert.ok(hasLogged('the first process answers again'))
    close(connections)
  })
})

// A first process that hangs, here suspended: its workers go on, and say that it hangs.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { get, list as listWith, LIVEZ } from '../assurance/harness/raw-http.ts'
import { childrenOf } from '../assurance/harness/process-tree.ts'
import { until } from '../assurance/harness/until.ts'
import { Folder, serve } from './command.ts'
import { ConsoleClient } from './console-client.ts'
import { PASSWORD } from './harness.ts'
import { ask, askForAll, close, connectionsTo } from './worker-connection.ts'

const EMAIL = 'keeper@example.com'

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

    process.kill(child.pid!, 'SIGSTOP')
    const connections = connectionsTo({ url }, 100)
    const all = (request: string, status: number) => askForAll(connections, request, status)
    await all(get('/readyz'), 200)
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

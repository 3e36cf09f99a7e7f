// Every line of the log is one whole JSON object, whatever clients send: the processes of an instance write to one pipe.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { it } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { Folder } from './command.ts'
import { ask, close, connectionsTo } from './worker-connection.ts'

/** What a pipe takes whole on Linux. */
const PIPE_BUF = 4096
const ROUNDS = 60
const CONNECTIONS = 16

const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`
const PATHS = ['/livez', `/${'a'.repeat(9000)}`, `/${'"'.repeat(9000)}`, `/${'\\'.repeat(4500)}`, '/v1/pets']

it('Lines of two workers are whole, and short enough for a pipe', async () => {
  await using folder = await Folder.create()
  const env = { PORT: '0', PETSTORE_WORKERS: '2', PETSTORE_LOG_LEVEL: 'info' }
  const { stdout, ...child } = folder.start(['serve'], { env })
  let text = ''
  stdout!.setEncoding('utf8').on('data', (part: string) => (text += part))
  while (!text.includes('"listening"')) await setTimeout(20)
  const { url } = JSON.parse(text.split('\n').find((line) => line.includes('"listening"'))!) as { url: string }

  const connections = connectionsTo({ url }, CONNECTIONS)
  for (let round = 0; round < ROUNDS; round += 1) {
    await ask(connections, get(PATHS[round % PATHS.length]!))
  }
  close(connections)
  process.kill(child.pid!, 'SIGTERM')
  await once(stdout!, 'close')

  const lines = text.split('\n').slice(0, -1)
  const torn = lines.filter((line) => {
    try {
      return Buffer.byteLength(line) >= PIPE_BUF || typeof (JSON.parse(line) as object) !== 'object'
    } catch {
      return true
    }
  })
  assert.deepEqual(torn.slice(0, 3), [], `${torn.length} of ${lines.length} lines`)
  const requests = lines.filter((line) => line.includes('"msg":"request"')).length
  assert.equal(requests, ROUNDS * CONNECTIONS, 'and none is missing')
})

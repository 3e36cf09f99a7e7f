// A form with a file, over a real connection: what came is read whole, and whatever else a client sends ends in a message.
import assert from 'node:assert/strict'
import { createServer, type IncomingMessage, request as startRequest } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'
import { after, before, describe, it } from 'node:test'
import { UPLOAD_LIMIT } from '../../contract/limits.ts'
import { FileRefused } from '../../pet-files/pet-file.ts'
import { readFileForm } from './file-form.ts'

const TYPE = 'multipart/form-data; boundary=edge'
const CSRF = '--edge\r\nContent-Disposition: form-data; name="csrf"\r\n\r\ntoken\r\n'
const partOf = (disposition: string, content: string, more = '') =>
  `--edge\r\nContent-Disposition: form-data; ${disposition}\r\n${more}\r\n${content}\r\n`
const fileOf = (content: string, name = 'pets.csv') => partOf(`name="file"; filename="${name}"`, content)
const END = '--edge--\r\n'

type Outcome = { fields?: string; name?: string | undefined; content?: string; problem?: string }

async function read(request: IncomingMessage): Promise<Outcome> {
  let found: Outcome = {}
  try {
    const { form, file } = await readFileForm(request)
    found = { fields: String(form), name: file?.name }
    if (file !== undefined) {
      const chunks = await Array.fromAsync(file.parts)
      found.content = Buffer.concat(chunks).toString('latin1')
    }
    return found
  } catch (error) {
    if (!(error instanceof FileRefused)) throw error
    return { problem: error.message }
  }
}

describe('A form with a file', () => {
  const outcomes: Promise<Outcome>[] = []
  const server = createServer((request, response) => {
    const outcome = read(request)
    outcomes.push(outcome)
    // Drops the rest, as client-connections.ts does in the service.
    void outcome.then((found) => response.end(JSON.stringify(found), () => request.resume()))
  })
  before(() => new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve)))
  after(() => server.close())

  /** Sends the body in pieces of `size` bytes, each with its own write. */
  function send(body: string | Buffer, headers: Record<string, string | number> = {}, size = 65_536): Promise<Outcome> {
    const bytes = Buffer.from(body)
    return new Promise((resolve, reject) => {
      const { port } = server.address() as AddressInfo
      const request = startRequest(
        { port, method: 'POST', headers: { 'Content-Type': TYPE, ...headers } },
        (response) => {
          let text = ''
          response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
          response.on('end', () => resolve(JSON.parse(text) as Outcome))
        },
      )
      request.on('error', reject)
      for (let at = 0; at < bytes.length; at += size) request.write(bytes.subarray(at, at + size))
      request.end()
    })
  }

  it('gives the fields before the file, its name and its content, in packets of any size', async () => {
    const content = 'name\r\n--edg\r--edg\r\n\r\n"Rex"\xff\0'
    const body = Buffer.from(CSRF + fileOf(content) + END, 'latin1')
    for (const size of [1, 2, 3, 7, 1000])
      assert.deepEqual(await send(body, {}, size), { fields: 'csrf=token', name: 'pets.csv', content }, String(size))
  })

  it('without a file, or with fields that come too late, has only what came before', async () => {
    assert.deepEqual(await send(CSRF + END), { fields: 'csrf=token' })
    assert.deepEqual(await send(fileOf('x') + CSRF + END), { fields: '', name: 'pets.csv', content: 'x' })
    assert.deepEqual(await send(END), { fields: '' })
  })

  it('that is cut off has no file, also in one part too many, and the process goes on', async () => {
    const whole = CSRF + fileOf('name,categoryId\nRex,3\n') + END
    for (let length = 0; length < whole.length - END.length - 2; length += 1)
      assert.equal((await send(whole.slice(0, length))).content, undefined, `${length}`)
    for (const start of ['', CSRF, CSRF + fileOf('x')])
      for (let count = 8; count < 24; count += 1)
        for (const part of [partOf('name="a"', 'x'), '--edge\r\n\r\nx\r\n'])
          for (const size of [1000, 65_536]) {
            const { content = 'x' } = await send(start + part.repeat(count) + part.slice(0, -3), {}, size)
            assert.equal(content, 'x')
          }
  })

  it('of thousands of parts is given up after the first ones, so that it takes no longer than others', async () => {
    const cost = async (body: string) => {
      const began = process.cpuUsage()
      await send(body)
      const { user, system } = process.cpuUsage(began)
      return user + system
    }
    const least = async (body: string) => Math.min(await cost(body), await cost(body), await cost(body))
    const plain = await least(fileOf('x'.repeat(60_000)) + END)
    const split = await least('--edge\r\n'.repeat(8000))
    assert.ok(split < 5 * plain + 20_000, `${split} µs, where a file takes ${plain} µs`)
  })

  it('whose connection breaks ends its file with an error', async () => {
    const { port } = server.address() as AddressInfo
    const known = outcomes.length
    const request = startRequest({ port, method: 'POST', headers: { 'Content-Type': TYPE, 'Content-Length': 5000 } })
    request.on('error', () => {})
    const arrived = new Promise<void>((resolve) => server.once('request', () => resolve()))
    request.write(CSRF + fileOf('x'.repeat(1000)).slice(0, -2))
    await arrived
    request.destroy()
    assert.match((await outcomes[known]!).problem ?? '', /^The file did not arrive completely/)
  })

  it('has a file of the largest size, and none that is much larger, whether its size was announced or not', async () => {
    const content = 'x'.repeat(UPLOAD_LIMIT)
    const largest = CSRF + fileOf(content) + END
    assert.equal((await send(largest)).content, content)
    const larger = CSRF + fileOf(content + 'x'.repeat(16_384)) + END
    const refused = /^The file is larger than 5 MB\.$/
    assert.match((await send(larger)).problem ?? '', refused)
    assert.match((await send(larger, { 'Content-Length': Buffer.byteLength(larger) })).problem ?? '', refused)
    const late = await send(`${CSRF}${'x'.repeat(100_000)}${fileOf('x')}${END}`)
    assert.equal(late.content, undefined)
    assert.match(
      (await send(CSRF + fileOf('x') + END + content + CSRF.repeat(1000))).problem ?? '',
      refused,
      'behind the end',
    )
  })

  it('that is compressed has no fields and no file', async () => {
    const answer = await send(gzipSync(CSRF + fileOf('x') + END), { 'Content-Encoding': 'gzip' })
    assert.deepEqual(answer, { fields: '' })
  })

  it('with huge, odd or no headers in its parts is read or refused, and nothing waits forever', async () => {
    const huge = 'x'.repeat(20_000)
    for (const part of [
      `--edge\r\n${huge}: ${huge}\r\n\r\nx\r\n`,
      `--edge\r\n${'X: y\r\n'.repeat(3000)}Content-Disposition: form-data; name="file"; filename="a"\r\n\r\nx\r\n`,
      '--edge\r\n\r\nx\r\n',
      '--edge\r\nx\r\n',
      '--edge\r\n: x\r\n\r\nx\r\n',
      '--edge\r\nContent-Disposition:\r\n\r\nx\r\n',
      '--edge\r\nContent-Disposition: attachment\r\n\r\nx\r\n',
      partOf('filename="a"', 'x'),
      partOf(`name="${huge}"`, huge),
      partOf('name="file"; filename*=utf-16\'\'%D8%00', 'x'),
      partOf('name="__proto__"', 'x'),
      partOf('name="csrf"', 'x', 'Content-Type: text/plain; charset=none\r\nContent-Transfer-Encoding: base64\r\n'),
      partOf('name="file"; filename="a\nb"', 'x'),
      Array.from({ length: 1000 }, (_, index) => partOf(`name="f${index}"`, 'x')).join(''),
    ]) {
      const found = await send(CSRF + part + END)
      assert.ok(
        found.problem !== undefined || found.fields?.startsWith('csrf=token'),
        JSON.stringify(part.slice(0, 80)),
      )
    }
  })

  it('of random bytes and pieces of a form always comes to an end', async () => {
    const pieces = [
      '--edge',
      '--',
      '\r\n',
      '\r\n\r\n',
      CSRF,
      fileOf('x'),
      END,
      'Content-Disposition: form-data; name="a"',
      '\0',
      'x'.repeat(70_000),
    ]
    let seed = 7
    const random = (below: number) => (seed = (seed * 48_271) % 2_147_483_647) % below
    for (let run = 0; run < 100; run += 1) {
      const body = Array.from({ length: random(12) }, () => pieces[random(pieces.length)]!).join('')
      const found = await send(body, {}, 1 + random(3000))
      assert.ok(found.problem !== undefined || found.fields !== undefined, JSON.stringify(body.slice(0, 300)))
    }
  })
})

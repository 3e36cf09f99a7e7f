// What a line of the log holds, for programs and for people.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createLog, forPeople, logRepeated } from './log.ts'

/** All lines that were written so far, parsed. */
function logInto(level: Parameters<typeof createLog>[0]) {
  const lines: Record<string, unknown>[] = []
  return {
    log: createLog(level, { write: (line) => void lines.push(JSON.parse(line) as Record<string, unknown>) }),
    lines,
  }
}

describe('The log', () => {
  it('is a JSON object a line: level by name, time in UTC, message and details, nothing else', () => {
    const { log, lines } = logInto('notice')
    log.notice({ url: 'http://x' }, 'listening')
    const [{ time, ...rest }] = lines as [Record<string, unknown>]
    assert.deepEqual(rest, { level: 'notice', url: 'http://x', msg: 'listening' })
    assert.match(String(time), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    assert.ok(Math.abs(Date.parse(String(time)) - Date.now()) < 60_000)
  })

  it('holds what its level asks for and all that weighs more; notice stands between info and warn', () => {
    const order = ['error', 'warn', 'notice', 'info', 'debug'] as const
    for (const [index, level] of order.entries()) {
      const { log, lines } = logInto(level)
      for (const each of order) log[each]('said')
      assert.deepEqual(
        lines.map((line) => line['level']),
        order.slice(0, index + 1),
      )
    }
  })

  it('tells an error with its type, message, stack and cause', () => {
    const { log, lines } = logInto('error')
    log.error({ error: new TypeError('broken', { cause: new Error('the reason') }) }, 'failed')
    const { type, message, stack } = lines[0]!['error'] as Record<string, string>
    assert.deepEqual([type, message], ['TypeError', 'broken: the reason'])
    assert.match(stack!, /log\.test\.ts[^]*caused by: Error: the reason/)
  })

  it('has no line that a pipe would not take whole, however long a text, a stack or a list is', () => {
    const { log, lines } = logInto('info')
    const error = new Error('é'.repeat(9000), { cause: new Error('x'.repeat(9000)) })
    log.info({ requestId: 'id', path: `/${'"'.repeat(9000)}`, status: 404 }, 'request')
    log.error({ requestId: 'id', error, other: '🐕'.repeat(5000) }, 'failed')
    log.error({ list: Array.from({ length: 5000 }, (_, index) => index) }, 'm'.repeat(9000))
    // Of less than 4096 characters, but of more bytes.
    log.info({ requestId: 'id', path: '猫'.repeat(1500) }, 'request')
    for (const line of lines) assert.ok(Buffer.byteLength(JSON.stringify(line)) < 4096)
    assert.deepEqual(
      lines.map(({ level, requestId, status }) => [level, requestId, status]),
      [
        ['info', 'id', 404],
        ['error', 'id', undefined],
        ['error', undefined, undefined],
        ['info', 'id', undefined],
      ],
    )
    for (const { time } of lines) assert.match(String(time), /^\d{4}-\d\d-\d\dT/)
    assert.match(String(lines[0]!['path']), /^\/"{900,}…$/)
    assert.match(String(lines[2]!['msg']), /^m{50}…$/)
  })

  it('is a short line for people: time of day, level, message, details', () => {
    let text = ''
    const people = forPeople((line) => (text += line))
    people.write('{"level":"warn","time":"2026-11-15T12:34:56.789Z","status":503,"path":"/v1/pets","msg":"slow"}\n')
    assert.equal(text, '12:34:56  warn    slow  status=503  path=/v1/pets\n')
  })

  it('lets no request steer the terminal of the people who read it', () => {
    let text = ''
    const people = forPeople((line) => (text += line))
    people.write(
      `${JSON.stringify({ level: 'info', path: '/\u001B[2J\u009B2J\u202E', more: ['\u0085'], msg: 'request' })}\n`,
    )
    assert.match(text, /path=\/\\u001b\[2J\\u009b2J\\u202e {2}more=\["\\u0085"\]\n$/)
  })
})

describe('A message that may come with every request', () => {
  it('is logged once, and then counted: a line every ten seconds until it stops', ({ mock }) => {
    mock.timers.enable({ apis: ['setInterval'] })
    const { log, lines } = logInto('notice')
    const logged = () => lines.splice(0).map(({ msg, count }) => [msg, count])
    for (let time = 0; time < 5; time += 1) logRepeated(log, 'error', { time }, 'away')
    logRepeated(log, 'error', {}, 'something else')
    assert.deepEqual(logged(), [
      ['away', undefined],
      ['something else', undefined],
    ])
    mock.timers.tick(10_000)
    assert.deepEqual([lines[0]!['level'], lines[0]!['seconds']], ['error', 10])
    assert.deepEqual(logged(), [['away; repeated', 4]])
    logRepeated(log, 'error', {}, 'away')
    mock.timers.tick(10_000)
    assert.deepEqual(logged(), [['away; repeated', 1]])
    mock.timers.tick(10_000)
    logRepeated(log, 'error', {}, 'away')
    assert.deepEqual(logged(), [['away', undefined]])
    for (let count = 1; count <= 3; count += 1) {
      for (let time = 0; time < count; time += 1) logRepeated(log, 'error', {}, 'away')
      mock.timers.tick(10_000)
      assert.deepEqual(logged(), [['away; repeated', count]], 'in the second series too')
    }
  })
})

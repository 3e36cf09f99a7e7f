// Password rules, hashing and the queue of hashes.
import assert from 'node:assert/strict'
import { argon2Sync } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { describe, it } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { hashPassword, HashQueue, PASSWORD_MIN_LENGTH, passwordProblem, verifyPassword } from './passwords.ts'

describe('A password', () => {
  it('is stored as argon2id with 19 MiB and 2 passes, salted', async () => {
    const [one, two] = [await hashPassword('correct horse battery'), await hashPassword('correct horse battery')]
    assert.match(one, /^\$argon2id\$v=19\$m=19456,t=2,p=1\$[\w+/]{22}\$[\w+/]{43}$/)
    assert.notEqual(one, two)
  })

  it('is verified exactly, and never against nothing', async () => {
    const stored = await hashPassword('correct horse 🐎 battery')
    assert.equal(await verifyPassword('correct horse 🐎 battery', stored), true)
    for (const wrong of ['', 'correct horse battery', 'Correct horse 🐎 battery', 'correct horse 🐎 battery ']) {
      assert.equal(await verifyPassword(wrong, stored), false)
    }
    assert.equal(await verifyPassword('anything', undefined), false)
  })

  it('verifies a hash that was made at another cost', async () => {
    const nonce = Buffer.alloc(16, 7)
    const cost = { memory: 64, passes: 1, parallelism: 2, tagLength: 24 }
    const tag = argon2Sync('argon2id', { message: 'an older password', nonce, ...cost })
    const stored = `$argon2id$v=19$m=64,t=1,p=2$${nonce.toString('base64')}$${tag.toString('base64')}`
    assert.equal(await verifyPassword('an older password', stored), true)
    assert.equal(await verifyPassword('another password', stored), false)
    await assert.rejects(verifyPassword('x', 'not a hash'), /not in the expected format/)
  })

  it('waits its turn where many are hashed: all are answered, and threads are left to the rest of the service', async () => {
    const stored = await hashPassword('correct horse battery')
    let hashed = 0
    const answers = Array.from({ length: 16 }, async (_, nth) => {
      const isRight = await verifyPassword(nth % 2 === 0 ? 'correct horse battery' : 'wrong', stored)
      hashed += 1
      return isRight === (nth % 2 === 0)
    })
    await readFile(import.meta.filename)
    assert.ok(hashed < 8, `a file was read only after ${hashed} of 16 passwords`)
    assert.ok((await Promise.all(answers)).every(Boolean))
  })

  it('has 12 to 1024 characters, counted as people do, of UTF-8, and is none of the most common ones, in any case', () => {
    const unreadable = /^The password has characters that cannot be read\. Send it as UTF-8\.$/
    for (const [password, problem] of [
      ['🐎'.repeat(11), /at least 12 characters, got 11\.$/],
      ['x'.repeat(1025), /at most 1024 characters, got 1025\.$/],
      // All bytes that are not UTF-8 read as one character.
      [Buffer.from('e4'.repeat(13), 'hex').toString('utf8'), unreadable],
      [Buffer.from('ff'.repeat(13), 'hex').toString('utf8'), unreadable],
      ['password1234', /most common/],
      ['QwertyUIOP123', /most common/],
    ] as const)
      assert.match(passwordProblem(password) ?? '', problem)
    const good = ['qm7 🐎🐎🐎🐎🐎🐎🐎🐎', '🐎'.repeat(1024), 'ääääääääääää¿', 'correct horse battery']
    for (const password of good) assert.equal(passwordProblem(password), undefined, password)
  })

  it('is compared with a list in which every line can ever match', () => {
    const lines = readFileSync(new URL('common-passwords.txt', import.meta.url), 'utf8')
      .trimEnd()
      .split('\n')
    assert.ok(lines.length > 300)
    assert.deepEqual(
      lines.filter((line) => [...line].length < PASSWORD_MIN_LENGTH || line !== line.toLowerCase()),
      [],
    )
    assert.equal(new Set(lines).size, lines.length)
  })
})

/** Starts a queue whose work ends when the test calls `endNext`. */
function startQueue() {
  const queue = new HashQueue()
  const started: number[] = []
  const ends: (() => void)[] = []
  const run = (nth: number, signal?: AbortSignal) =>
    queue.run(async () => {
      started.push(nth)
      const end = Promise.withResolvers<void>()
      ends.push(() => end.resolve())
      await end.promise
      return nth
    }, signal)
  return { run, started, endNext: () => (ends.shift()?.(), setImmediate()) }
}

describe('the queue of password hashes', () => {
  it('works on two at a time, in order', async () => {
    const { run, started, endNext } = startQueue()
    const all = [1, 2, 3, 4].map((nth) => run(nth))
    assert.deepEqual(started, [1, 2])
    await endNext()
    assert.deepEqual(started, [1, 2, 3])
    for (let left = 3; left > 0; left -= 1) await endNext()
    assert.deepEqual(await Promise.all(all), [1, 2, 3, 4])
  })

  it('works on one at a time where several processes share the machine', async () => {
    const queue = new HashQueue()
    queue.atATime = 1
    let running = 0
    await Promise.all(
      [1, 2, 3].map(() =>
        queue.run(async () => {
          assert.equal((running += 1), 1)
          await setImmediate()
          running -= 1
        }),
      ),
    )
  })

  it('goes on after one that failed', async () => {
    const queue = new HashQueue()
    for (let time = 0; time < 5; time += 1)
      await assert.rejects(
        queue.run(() => Promise.reject(new Error('failed'))),
        /failed/,
      )
    assert.equal(await queue.run(async () => 'done'), 'done')
  })
})

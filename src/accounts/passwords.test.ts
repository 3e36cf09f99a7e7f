import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { hashPassword, PASSWORD_MIN_LENGTH, passwordProblem, verifyPassword } from './passwords.ts'

describe('a password', () => {
  it('needs twelve characters, counted as people count them, and nothing else', () => {
    assert.match(passwordProblem('elevenchars') ?? '', /at least 12 characters, got 11/)
    assert.match(passwordProblem('🐈'.repeat(11)) ?? '', /got 11/)
    assert.equal(passwordProblem('🐈'.repeat(12)), undefined)
    assert.equal(passwordProblem('            '), undefined)
    assert.match(passwordProblem('x'.repeat(1025)) ?? '', /at most 1024 characters, got 1025/)
  })

  it('is refused when it is among the most common ones, in any case', () => {
    assert.match(passwordProblem('password1234') ?? '', /most common/)
    assert.match(passwordProblem('QwertyUIOP123') ?? '', /most common/)
    assert.equal(passwordProblem('correct horse battery'), undefined)
  })

  it('is compared with a list in which every line can ever match', () => {
    const lines = readFileSync(new URL('common-passwords.txt', import.meta.url), 'utf8').trimEnd().split('\n')
    assert.ok(lines.length > 300)
    assert.deepEqual(lines.filter((line) => [...line].length < PASSWORD_MIN_LENGTH || line !== line.toLowerCase()), [])
    assert.equal(new Set(lines).size, lines.length)
  })

  it('verifies against its own hash and no other, and never without one', async () => {
    const stored = await hashPassword('correct horse battery')
    assert.equal(await verifyPassword('correct horse battery', stored), true)
    assert.equal(await verifyPassword('correct horse batterz', stored), false)
    assert.equal(await verifyPassword('correct horse battery', undefined), false)
  })
})

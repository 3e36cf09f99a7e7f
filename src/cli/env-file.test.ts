// What a file .env says, and which of its lines say nothing.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { parseEnvFile } from './env-file.ts'

it('finds the lines of a file .env that are ignored, and no others', () => {
  const text = [
    '\uFEFF# a comment',
    'A=1\r',
    '  export B = "2" # two',
    '',
    'PETSTORE_ENVIRONMENT: production',
    'C="first',
    'second of the same value',
    'third"',
    'PORT 8080',
    'set D=4',
    'E-F=5',
    "G='x'",
    'lonely',
  ].join('\n')
  const { variables, ignoredLines } = parseEnvFile(text)
  assert.deepEqual(ignoredLines, [5, 9, 10, 11, 13])
  assert.partialDeepStrictEqual(
    { ...variables },
    { A: '1', B: '2', C: 'first\nsecond of the same value\nthird', G: 'x' },
  )
  assert.deepEqual(parseEnvFile('').ignoredLines, [])
})

// What a file .env says, and which of its lines say nothing.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { parseEnvFile } from './env-file.ts'

it('finds the lines of a file .env that are ignored, and no others', () => {
  const text = [
    '\uFEFF# a comment',
    'A_1=1\r',
    '  export  B2 = "2" # two',
    '',
    'PETSTORE_ENVIRONMENT: production',
    'C="first',
    'second of the same value',
    'third"',
    'PORT 8080',
    'set D=4',
    'E-F=5',
    "G='\uFEFFx'",
    'lonely',
  ].join('\n')
  const { variables, ignoredLines } = parseEnvFile(text)
  assert.deepEqual(ignoredLines, [5, 9, 10, 11, 13])
  assert.partialDeepStrictEqual(
    { ...variables },
    { A_1: '1', B2: '2', C: 'first\nsecond of the same value\nthird', G: '\uFEFFx' },
  )
  assert.deepEqual(parseEnvFile('').ignoredLines, [])
})

// --format: what it means, and what it refuses.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { UsageError } from './command.ts'
import { formatOf } from './file-options.ts'

describe('The format of a file', () => {
  it('is what its name ends in, or what is asked for', () => {
    for (const name of ['a.csv', 'A.CSV', 'a.jsonl.csv']) assert.equal(formatOf(name, undefined), 'csv')
    for (const name of ['a.jsonl', 'a.ndjson', 'a.NDJSON']) assert.equal(formatOf(name, undefined), 'jsonl')
    assert.equal(formatOf('a.csv', 'jsonl'), 'jsonl')
    for (const name of ['-', 'csv', 'a.txt'])
      assert.throws(
        () => formatOf(name, undefined),
        new UsageError(`The format of ${name} is unknown; name it with --format csv or --format jsonl.`),
      )
    assert.throws(() => formatOf('a.csv', 'xml'), new UsageError('--format must be csv or jsonl, got "xml".'))
  })
})

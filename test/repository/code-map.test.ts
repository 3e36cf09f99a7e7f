// The map of the code has a line for each file of src, and answers questions with files that are there.
import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'

const root = join(import.meta.dirname, '../..')
const map = readFileSync(join(root, 'docs/code-map.md'), 'utf8')

describe('The map of the code', () => {
  it('has one line for each file of src, and none for another', () => {
    const files = globSync('**/*.ts', { cwd: join(root, 'src'), exclude: ['**/*.test.ts', 'console/vendor/**'] })
    const lines = Array.from(map.matchAll(/^- `([^`]+)`: /gm), ([, file = '']) => file)
    assert.deepEqual(lines.toSorted(), files.toSorted())
  })
})

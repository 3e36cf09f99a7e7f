// The map of the code has a line for each file of src, and answers questions with files that are there.
import assert from 'node:assert/strict'
import { existsSync, globSync, readFileSync } from 'node:fs'
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

  it('answers at least 25 questions, each with a file of src', () => {
    const answers = Array.from(map.matchAll(/^\| [^|]+\? \| (.+) \|$/gm), ([, answer = '']) => answer)
    assert.ok(answers.length >= 25, `${answers.length} questions`)
    const named = answers.map((answer) => answer.match(/(?<=`)[\w./-]+\/[\w.-]+\.(?:ts|sql)(?=`)|(?<=`)\w+\.ts(?=`)/g))
    for (const [index, files] of named.entries()) {
      assert.ok(files, `no file in: ${answers[index]}`)
      // One of both engines has no folder.
      const missing = files.filter((file) => !existsSync(join(root, 'src', file)))
      assert.deepEqual(
        missing.filter((file) => globSync(`src/store/*/${file}`, { cwd: root }).length !== 2),
        [],
      )
    }
  })
})

// The list at the end of `npm test` (slowest.ts), of a real run.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { collect } from '../../assurance/harness/processes.ts'

const REPORTER = fileURLToPath(new URL('slowest.ts', import.meta.url))

it('A run ends with its ten slowest tests, the slowest first, and its slowest files', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'petstore-test-'))
  const cases = Array.from(
    { length: 12 },
    (_, index) => `test('case ${index}', () => setTimeout(${index === 7 ? 2000 : 0}))`,
  )
  await writeFile(
    join(folder.path, 'some.test.mjs'),
    `import { describe, test } from 'node:test'
     import { setTimeout } from 'node:timers/promises'
     describe('a group', () => { ${cases.join('\n')} })`,
  )
  await writeFile(join(folder.path, 'quick.test.mjs'), '')
  // Without NODE_TEST_CONTEXT, which would make it a part of this run.
  const runner = spawn(process.execPath, ['--test', '--test-reporter', REPORTER], { cwd: folder.path, env: {} })
  const { code, stdout, stderr } = await collect(runner)
  assert.equal(code, 0, stderr)
  const [, tests = '', files = ''] = stdout.split(/The slowest .*\n/)
  // On a busy machine the start of the other file may take longer.
  assert.match(tests, /^ +[2-9]\.\d s  case 7 \(some\.test\.mjs\)\n/m)
  const seconds = Array.from(tests.matchAll(/^ *([\d.]+) s  /gm), ([, number]) => Number(number))
  assert.equal(seconds.length, 10)
  assert.deepEqual(
    seconds,
    seconds.toSorted((one, other) => other - one),
  )
  assert.match(files, /^ +\d+\.\d s  some\.test\.mjs\n/m)
})

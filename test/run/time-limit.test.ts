// No test file can hang a run: the limit of time-limit.ts.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { collect, type Ended } from '../harness/programs/processes.ts'

const LIMIT = fileURLToPath(new URL('time-limit.ts', import.meta.url))

/** Runs a file with this text as the runner would; without a limit of a test, that of the file is five seconds. */
async function runFile(text: string, options: string[] = []): Promise<Ended> {
  const folder = await mkdtemp(join(tmpdir(), 'petstore-test-'))
  await writeFile(join(folder, 'some.test.mjs'), `import { describe, test } from 'node:test'\n${text}`)
  // Without NODE_TEST_CONTEXT, which would make it a part of this run.
  const runner = spawn(
    process.execPath,
    ['--test', '--import', LIMIT, `--test-global-setup=${LIMIT}`, ...options, 'some.test.mjs'],
    {
      cwd: folder,
      env: { PATH: process.env['PATH'], TMPDIR: tmpdir() },
    },
  )
  // Far past the limit: what it did not end, ends here.
  const late = setTimeout(() => runner.kill('SIGKILL'), 90_000)
  const ended = await collect(runner)
  clearTimeout(late)
  await rm(folder, { recursive: true })
  return ended
}

describe('A test file', { concurrency: true }, () => {
  for (const [what, text, told] of [
    ['waits forever', `setInterval(() => {}, 1000); test('hangs', () => new Promise(() => {}))`, 'in "hangs"'],
    [
      'blocks the event loop',
      `describe('x', () => test('blocks', () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)))`,
      'in "x > blocks"',
    ],
  ] as const) {
    it(`that ${what} is ended at its time limit, and fails the run with the name of the test`, async () => {
      const { code, stdout, stderr } = await runFile(text)
      assert.equal(code, 1, stdout + stderr)
      assert.ok(stderr.includes(`some.test.mjs is ended ${told}: no test began or ended for 5 s.\n`), stdout + stderr)
    })
  }

  it('that ends in time passes', async () => {
    const { code, stdout, stderr } = await runFile(`test('passes', () => {})`, ['--test-timeout=60000'])
    assert.equal(code, 0, stdout + stderr)
  })
})

// Ends a test file in which no test begins or ends for too long, as a failure that names the test. Node's --test-timeout fails a
// test, but can't while that blocks the event loop, and leaves the process of a file with an open handle. The files note what they
// do (node --import), and the process that runs them watches (--test-global-setup): a thread in each would cost more.
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  ftruncateSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { afterEach, beforeEach } from 'node:test'

/** The folder where the process of each test file notes which tests run. */
const NOTES = 'TEST_PETSTORE_NOTES'

const folderOfNotes = process.env[NOTES]
if (folderOfNotes !== undefined) noteTests(join(folderOfNotes, String(process.pid)))

function noteTests(note: string): void {
  // Opened once, and removed in a folder of everybody's: a test may give up the rights of root.
  const file = openSync(note, 'w')
  const running = new Set<string>()
  let ended = 'it has begun'
  const write = () => {
    const what = running.size > 0 ? `in "${[...running].join('", "')}"` : `after ${ended}`
    ftruncateSync(file)
    writeSync(file, `${basename(process.argv[1]!)} is ended ${what}`, 0)
  }
  write()
  beforeEach(({ fullName }) => {
    running.add(fullName)
    write()
  })
  afterEach(({ fullName }) => {
    running.delete(fullName)
    ended = `"${fullName}"`
    write()
  })
  process.once('exit', () => rmSync(note, { force: true }))
}

/** Watches the test files that this process is about to run. */
export function globalSetup(): void {
  const folder = mkdtempSync(join(tmpdir(), 'petstore-notes-'))
  chmodSync(folder, 0o777)
  process.env[NOTES] = folder
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  const timeout = process.execArgv.find((option) => option.startsWith('--test-timeout='))?.split('=')[1]
  const seconds = timeout === undefined ? 5 : Number(timeout) / 1000 + 60
  setInterval(() => {
    for (const pid of readdirSync(folder)) {
      const note = join(folder, pid)
      const changed = statSync(note, { throwIfNoEntry: false })?.mtimeMs ?? Infinity
      if (Date.now() - changed < seconds * 1000) continue
      process.stderr.write(`${readFileSync(note, 'utf8')}: no test began or ended for ${seconds} s.\n`)
      rmSync(note)
      // A process that was killed leaves its note, and its id may be another's by now.
      const parent = spawnSync('ps', ['-o', 'ppid=', '-p', pid], { encoding: 'utf8' }).stdout
      if (Number(parent) === process.pid) process.kill(Number(pid), 'SIGKILL')
    }
  }, 1000).unref()
}

// The executable alone: copied under another name into a read-only folder whose path has spaces, and run by an ordinary user
// without Node.js.
import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import {
  chmodSync,
  chownSync,
  copyFileSync,
  mkdtempSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { after, describe, it } from 'node:test'
import { VERSION } from '../../src/contract/operations.ts'
import { Folder, makeKeyByProgram, serve, type Served } from '../../test/harness/programs/command.ts'
import { until } from '../../test/harness/until.ts'
import { describeProgram } from '../package/installed-program.ts'
import { processes } from '../package/old-node.ts'

const NOBODY = 65_534

const BUILT = process.env['TEST_PETSTORE_EXECUTABLE']!
const SUMS = readFileSync(join(dirname(BUILT), 'SHA256SUMS'), 'utf8')
const LICENCES = readFileSync(join(dirname(BUILT), 'LICENSES.txt'), 'utf8')

/** The only folder in which programs are looked for has no other file: no Node.js is found. */
const home = mkdtempSync(join(tmpdir(), 'petstore executable '))
const FILE = join(home, 'Our shop')
copyFileSync(BUILT, FILE)
chmodSync(home, 0o555)
// Not even these tests are root's from here on.
if (process.getuid?.() === 0) {
  chownSync(home, NOBODY, NOBODY)
  process.setgid!(NOBODY)
  process.setuid!(NOBODY)
}
after(() => {
  chmodSync(home, 0o755)
  rmSync(home, { recursive: true })
})

const newFolder = () => Folder.create([FILE], { PATH: home })
const workersOf = ({ child }: Served) => processes().filter(({ parent }) => parent === child.pid)

describe('The executable', () => {
  describeProgram(newFolder, "'Our shop'")

  it('leaves NODE_OPTIONS and the options of Node.js aside', async () => {
    await using folder = await newFolder()
    const env = { NODE_OPTIONS: '--require=/nowhere.js --bad-option' }
    const { code, stdout, stderr } = await folder.run(['--version'], { env })
    assert.deepEqual([code, stdout, stderr], [0, `${VERSION}\n`, ''])
    assert.match(
      (await folder.run(['--inspect', 'serve'])).stderr,
      /The command comes first, then its options: serve --inspect/,
    )
    assert.match((await folder.run(['worker'])).stderr, /There is no command "worker"/)
  })

  it('serves with workers, and replaces one that ends by the same version after its file was replaced', async () => {
    const place = mkdtempSync(join(tmpdir(), 'petstore-replaced-'))
    const file = join(place, 'petstore')
    copyFileSync(FILE, file)
    await using folder = await Folder.create([file])
    const served = await serve(folder, { env: { PETSTORE_WORKERS: '2' } })
    const { key } = await makeKeyByProgram(folder)
    const [worker] = workersOf(served)
    // Opens no debugger.
    for (const pid of [served.child.pid!, worker!.pid]) process.kill(pid, 'SIGUSR1')

    writeFileSync(`${file}-new`, '#!/bin/sh\nexit 7\n', { mode: 0o755 })
    renameSync(`${file}-new`, file)
    process.kill(worker!.pid, 'SIGKILL')
    const others = () => workersOf(served).filter(({ pid }) => pid !== worker!.pid)
    await until(() => others().length > 0, 'another worker')
    assert.match(readlinkSync(`/proc/${others()[0]!.pid}/exe`), /\(deleted\)$/)
    // Both processes accept; each answers some of these.
    for (let count = 0; count < 40; count += 1) {
      const { status } = await fetch(`${served.url}/v1/pets`, {
        headers: { Authorization: `Bearer ${key}`, Connection: 'close' },
      })
      assert.equal(status, 200)
    }
    served.child.kill('SIGTERM')
    const { code, stderr } = await served.ended
    assert.deepEqual([code, stderr], [0, ''])
    rmSync(place, { recursive: true })
  })

  it('reads .env, and stops on Ctrl-C', async () => {
    await using folder = await newFolder()
    writeFileSync(join(folder.path, '.env'), 'DATABASE_URL=sqlite:shop.db\n')
    const served = await serve(folder)
    assert.match(JSON.stringify(served.lines), /shop\.db/)
    served.child.kill('SIGINT')
    assert.equal((await served.ended).code, 0)
  })

  it('has a checksum and the licences of all that it holds beside it', () => {
    assert.ok(SUMS.includes(`${hash('sha256', readFileSync(FILE))}  ${basename(BUILT)}\n`), SUMS)
    for (const name of ['petstore', 'Node.js', 'pino', 'postgres', 'prom-client', 'scalar'])
      assert.match(LICENCES, new RegExp(`^=== .*${name}`, 'm'))
  })
})

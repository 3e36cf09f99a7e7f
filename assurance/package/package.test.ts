// The service without a checkout: packed, installed where there is nothing else, run from an empty folder on Node.js 20.
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { Folder } from '../../test/harness/programs/command.ts'
import { describeProgram } from './installed-program.ts'
import { installNode, ROOT } from './old-node.ts'

const FILES =
  /^(?:package\.json|README\.md|LICENSE|bin\/petstore\.js|dist\/.+(?:\.(?:js|css|svg|sql|txt)|\/vendor\/.+)|node_modules\/.+)$/

describe('The installed package', () => {
  const home = mkdtempSync(join(tmpdir(), 'petstore-package-'))
  let files: string[]
  let installation: { status: number | null; stderr: string }
  let program: string[]

  before(() => {
    const [packed] = JSON.parse(
      execFileSync('npm', ['pack', '--silent', '--json', '--pack-destination', home], { cwd: ROOT, encoding: 'utf8' }),
    ) as [{ filename: string; files: { path: string }[] }]
    files = packed.files.map(({ path }) => path)
    const prefix = join(home, 'prefix')
    const path = `PATH=${prefix}/bin:${installNode(20, join(home, 'node'))}:/usr/bin:/bin`
    installation = spawnSync(
      'env',
      [path, 'npm', 'install', '--global', '--prefix', prefix, '--engine-strict', join(home, packed.filename)],
      { encoding: 'utf8' },
    )
    program = ['env', path, 'petstore']
  })
  after(() => rmSync(home, { recursive: true }))

  it('holds the program, what it reads and what it depends on, and nothing else', () => {
    assert.deepEqual(
      files.filter((path) => !FILES.test(path)),
      [],
    )
    assert.deepEqual(
      files.filter((path) => /\.test\.|\.ts$/.test(path) && !path.startsWith('node_modules/')),
      [],
    )
  })

  it('installs on Node.js 20 without a word about engines', () => {
    assert.equal(installation.status, 0, installation.stderr)
    assert.doesNotMatch(installation.stderr, /EBADENGINE/)
  })

  describeProgram(() => Folder.create(program))
})

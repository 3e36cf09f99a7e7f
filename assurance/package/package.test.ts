// The service without a checkout: packed, installed where there is nothing else, run from an empty folder on Node.js 20.
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { Folder, makeKeyByProgram, serve } from '../../test/command.ts'
import { ENGINES } from '../harness/engines.ts'
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

  for (const engine of ENGINES) {
    it(`serves API, console and reference on ${engine.name}, from an empty folder, and stops on SIGTERM with 0`, async () => {
      await using folder = await Folder.create(program)
      await using database = await engine.newDatabase()
      const env = { DATABASE_URL: database.url }
      const served = await serve(folder, { env })
      const { key } = await makeKeyByProgram(folder, { env })
      const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' }
      const get = async (address: string) => {
        const response = await fetch(served.url + address, { headers })
        assert.equal(response.status, 200, address)
        return response.text()
      }

      const made = await fetch(`${served.url}/v1/pets`, {
        method: 'POST',
        headers,
        body: '{"name":"Rex","categoryId":3}',
      })
      const rex = await made.text()
      assert.deepEqual([made.status, rex], [201, '{"id":1,"name":"Rex","categoryId":3,"status":"available"}'])
      assert.equal(await get('/v1/pets'), `[${rex}]`)
      assert.equal(await get('/v1/pets/1'), rex)
      assert.equal((JSON.parse(await get('/openapi.json')) as { info: { title: string } }).info.title, 'Petstore')
      for (const page of ['/', '/docs']) {
        const assets = (await get(page)).matchAll(/(?:href|src)="(\/assets\/[^"]+)"/g)
        const texts = await Promise.all(Array.from(assets, ([, address = '']) => get(address)))
        assert.ok(texts.length > 1 && texts.every((text) => text !== ''), page)
      }

      served.child.kill('SIGTERM')
      const { code, stderr } = await served.ended
      assert.deepEqual([code, stderr], [0, ''])
      assert.deepEqual(readdirSync(folder.path), [])
    })
  }

  it('names itself in hints as it was called', async () => {
    await using folder = await Folder.create(program)
    assert.match((await folder.run(['key', 'create'])).stderr, /^See: petstore help key create$/m)
  })

  it('makes its database in the folder where it runs, and refuses a common password', async () => {
    await using folder = await Folder.create(program)
    const refused = await folder.run(['account', 'create', 'you@example.com', '--password-stdin'], {
      input: 'passwordpassword',
    })
    assert.equal(refused.code, 1)
    assert.match(refused.stderr, /common/)
    await makeKeyByProgram(folder)
    assert.deepEqual(readdirSync(folder.path), ['data'])
  })
})

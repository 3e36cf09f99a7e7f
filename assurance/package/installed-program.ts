// What the program does wherever it is installed, without a checkout: from the npm package, and as one executable file.
import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { it } from 'node:test'
import { type Folder, makeKeyByProgram, serve } from '../../test/harness/programs/command.ts'
import { ENGINES } from '../../test/harness/databases/engines.ts'

/** Declares the cases. `newFolder` makes a folder to run it in; `name` is how it calls itself in hints. */
export function describeProgram(newFolder: () => Promise<Folder>, name = 'petstore'): void {
  for (const engine of ENGINES) {
    it(`serves API, console and reference on ${engine.name}, from an empty folder, and stops on SIGTERM with 0`, async () => {
      await using folder = await newFolder()
      await using database = await engine.newEmptyDatabase()
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
    await using folder = await newFolder()
    assert.match(
      (await folder.run(['key', 'create'])).stderr,
      new RegExp(`^See: ${RegExp.escape(name)} help key create$`, 'm'),
    )
  })

  it('makes its database in the folder where it runs, and refuses a common password', async () => {
    await using folder = await newFolder()
    const refused = await folder.run(['account', 'create', 'you@example.com', '--password-stdin'], {
      input: 'passwordpassword',
    })
    assert.equal(refused.code, 1)
    assert.match(refused.stderr, /common/)
    await makeKeyByProgram(folder)
    assert.deepEqual(readdirSync(folder.path), ['data'])
  })
}

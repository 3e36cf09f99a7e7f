// npm run drill generated-clients: generates clients and a Postman collection from the document that a running service serves,
// compiles the clients strictly, and runs all of them against that service. The generators are installed on demand, in this folder alone.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { OPERATIONS } from '../../src/contract/operations.ts'
import { installOnDemand } from '../../test/harness/programs/install-on-demand.ts'
import { BLOCKS, runBlock } from '../../test/repository/documented-commands.ts'
import { type Petstore, startPetstore } from '../../test/harness/harness.ts'

const HERE = fileURLToPath(new URL('.', import.meta.url))
const MODULES = join(HERE, 'node_modules')
const run = promisify(execFile)

/** How each generator is called with the address of a document. */
const GENERATORS: Record<string, (document: string) => string[]> = {
  'openapi-typescript': (document) => ['openapi-typescript/bin/cli.js', document, '-o', 'generated/petstore.d.ts'],
  'hey-api': (document) => ['@hey-api/openapi-ts/bin/run.js', '-i', document, '-o', 'generated', '--no-log-file'],
}

const COMPILER = {
  target: 'esnext',
  lib: ['esnext', 'dom', 'dom.iterable'],
  module: 'nodenext',
  strict: true,
  types: [],
  outDir: 'compiled',
  rewriteRelativeImportExtensions: true,
}

describe('A client generated from /openapi.json', () => {
  const work = mkdtempSync(join(tmpdir(), 'petstore-generated-'))
  let service: Petstore
  before(async () => {
    installOnDemand(HERE)
    service = await startPetstore()
  })
  after(async () => {
    await service[Symbol.asyncDispose]()
    rmSync(work, { recursive: true })
  })

  /** Converts the served document with Postman's converter, and returns the collection as text. */
  const convert = async (...options: string[]) => {
    const [document, collection] = [join(work, 'openapi.json'), join(work, 'converted.json')]
    writeFileSync(document, await (await fetch(`${service.url}/openapi.json`)).text())
    const converter = join(MODULES, 'openapi-to-postmanv2/bin/openapi2postmanv2.js')
    await run(process.execPath, [converter, '-s', document, '-o', collection, ...options])
    return readFileSync(collection, 'utf8')
  }

  /** Runs a collection with Postman's own runner against a new service: every operation succeeds, and every test of the collection passes. */
  const runCollection = async (text: string) => {
    await using own = await startPetstore()
    const [collection, report] = [join(work, 'collection.json'), join(work, 'report.json')]
    writeFileSync(collection, text)
    const variables = { baseUrl: `${own.url}/v1`, bearerToken: own.key, apiKey: own.key }
    const given = Object.entries(variables).flatMap(([name, value]) => ['--env-var', `${name}=${value}`])
    const reporting = ['--reporters', 'json', '--reporter-json-export', report]
    await run(process.execPath, [join(MODULES, 'newman/bin/newman.js'), 'run', collection, ...given, ...reporting])
    const { run: ran } = JSON.parse(readFileSync(report, 'utf8')) as {
      run: { executions: { item: { name: string }; response: { code: number } }[] }
    }
    assert.deepEqual(
      ran.executions.map(({ item, response }) => [item.name, response.code]),
      OPERATIONS.map(({ summary, success }) => [summary, success.status]),
    )
  }

  it('as a Postman collection succeeds with every example', { timeout: 300_000 }, async () => {
    await runCollection(await convert('-O', 'parametersResolution=Example'))
  })

  it("as a Postman collection with the converter's default settings needs only its placeholders filled in, and no cursor", async () => {
    const filled = (await convert())
      .replaceAll(String.raw`\"<long>\"`, '1')
      .replaceAll('"<long>"', '"1"')
      .replaceAll('"disabled":false,', '')
      .replaceAll('"key":"cursor","value":"<string>"', '"key":"cursor","disabled":true')
    await runCollection(filled)
  })

  it('is not needed in Postman: the collection in docs/ succeeds as it is', async () => {
    await runCollection(readFileSync(join(HERE, '../../docs/petstore.postman_collection.json'), 'utf8'))
  })

  for (const block of BLOCKS.filter(({ text }) => /\bnpx\b/.test(text))) {
    it(`is made by the commands in the documents, with what npx finds today: ${block.place}`, async () => {
      const { code, stdout, stderr } = await runBlock(block, service)
      assert.equal(code, 0, stdout + stderr)
    })
  }

  for (const [name, generate] of Object.entries(GENERATORS)) {
    it(`by ${name} compiles and works`, { timeout: 300_000 }, async () => {
      const folder = join(work, name)
      mkdirSync(folder)
      symlinkSync(MODULES, join(folder, 'node_modules'))
      writeFileSync(join(folder, 'package.json'), '{"type":"module"}')
      cpSync(join(HERE, 'programs', `${name}.ts`), join(folder, 'program.ts'))
      writeFileSync(
        join(folder, 'globals.d.ts'),
        'declare const process: { env: Record<string, string | undefined> }\n',
      )
      writeFileSync(
        join(folder, 'tsconfig.json'),
        JSON.stringify({ compilerOptions: COMPILER, include: ['program.ts', 'globals.d.ts'] }),
      )
      const node = async (...words: string[]) => {
        const env = { ...process.env, BASE: `${service.url}/v1`, KEY: service.key }
        return (
          await run(process.execPath, words, { cwd: folder, env }).catch((error: { stdout: string; stderr: string }) =>
            assert.fail(`${error.stdout}${error.stderr}`),
          )
        ).stdout
      }
      const [generator = '', ...words] = generate(`${service.url}/openapi.json`)
      await node(join(MODULES, generator), ...words)
      await node(join(MODULES, 'typescript/bin/tsc'))
      const { created, listed, got, code, status } = JSON.parse(await node('compiled/program.js')) as Record<
        string,
        { id: number }
      >
      assert.ok(created && created.id > 0)
      assert.deepEqual(created, { id: created.id, name: 'Rex', categoryId: 3, status: 'available' })
      assert.deepEqual(listed, [created])
      assert.deepEqual(got, created)
      assert.deepEqual([code, status], ['invalid_parameter', 400])
    })
  }
})

// npm run test:generated-clients: generates clients from the document that a running service serves, compiles them strictly, and
// runs them against that service. The generators are installed on demand, in this folder alone.
import assert from 'node:assert/strict'
import { execFile, execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { type Petstore, startPetstore } from '../test/harness.ts'

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
    if (!existsSync(MODULES))
      execFileSync('npm', ['install', '--no-package-lock', '--no-audit', '--no-fund', '--ignore-scripts'], {
        cwd: HERE,
        stdio: 'inherit',
      })
    service = await startPetstore()
  })
  after(async () => {
    await service[Symbol.asyncDispose]()
    rmSync(work, { recursive: true })
  })

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

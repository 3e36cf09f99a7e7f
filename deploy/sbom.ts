// npm run sbom: the bill of materials of all that runs in production (CycloneDX), with the reference that is vendored.
import { execFileSync } from 'node:child_process'
import { hash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

interface Bom {
  serialNumber: string
  metadata: { component: object }
  components: object[]
}

const ROOT = new URL('..', import.meta.url)
const SCALAR = new URL('src/console/vendor/scalar/', ROOT)

function vendored(): object {
  const [, name, version] = /npm package `([^`]+)`, version ([\d.]+)/.exec(
    readFileSync(new URL('README.md', SCALAR), 'utf8'),
  )!
  const content = hash('sha256', readFileSync(new URL('standalone.js', SCALAR)))
  return {
    'bom-ref': `${name}@${version}`,
    type: 'library',
    name,
    version,
    scope: 'required',
    purl: `pkg:npm/${name!.replace('@', '%40')}@${version}`,
    hashes: [{ alg: 'SHA-256', content }],
    licenses: [{ license: { id: 'MIT' } }],
  }
}

const text = execFileSync('npm', ['sbom', '--sbom-format', 'cyclonedx', '--omit', 'dev'], {
  cwd: fileURLToPath(ROOT),
  encoding: 'utf8',
  maxBuffer: 2 ** 26,
})
// Without a time, a random number, npm's version and the name of the folder, so that one commit gives one bill.
const { serialNumber: _, metadata, ...bom } = JSON.parse(text) as Bom
const component = { ...metadata.component, name: 'petstore' }
const components = [...bom.components, vendored()]
process.stdout.write(`${JSON.stringify({ ...bom, metadata: { component }, components }, null, 2)}\n`)

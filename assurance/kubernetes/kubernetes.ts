// npm run drill kubernetes: builds the manifests of deploy/kubernetes with kubectl, and checks them against the published schemas,
// which are installed on demand. A schema allows unknown fields; the compiler finds those. --plant misspells a field, and then the
// drill must fail.
import { spawnSync } from 'node:child_process'
import { symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { conduct } from '../drills/conduct.ts'
import { installOnDemand } from '../harness/install-on-demand.ts'
import { buildManifests, hasKubectl } from '../harness/manifests.ts'
import { say } from '../harness/say.ts'

const HERE = import.meta.dirname
const ROOT = join(HERE, '../..')

interface Manifest {
  apiVersion: string
  kind: string
}
type Model = new (manifest: Manifest) => { validate(): void }
interface Yaml {
  parseAllDocuments: (text: string) => { toJS: () => Manifest }[]
}

/** By a variable name: the compiler must not look for a package that is not installed yet. */
const load = (name: string) => import(name) as Promise<unknown>

await conduct({}, async ({ folder, plant }) => {
  if (!hasKubectl) throw new Error('Missing: kubectl 1.24 or later, in Debian 13 the package kubectl')
  installOnDemand(HERE)
  const { parseAllDocuments } = (await load('yaml')) as Yaml
  let program = ''
  for (const engine of ['postgres', 'sqlite'] as const) {
    const built = buildManifests(folder, engine)
    for (const document of parseAllDocuments(plant ? built.replaceAll('GracePeriodSeconds', 'GraceSeconds') : built)) {
      const manifest = document.toJS()
      const { apiVersion, kind } = manifest
      const vendor = apiVersion.startsWith('monitoring.')
        ? '@kubernetes-models/prometheus-operator'
        : 'kubernetes-models'
      const from = `${vendor}/${apiVersion}/${kind}`
      new ((await load(from)) as Record<string, Model>)[kind]!(manifest).validate()
      program += `;(${JSON.stringify(manifest)}) satisfies import('${from}').I${kind}\n`
      say(`${engine}: ${apiVersion} ${kind} fits its schema`)
    }
  }
  symlinkSync(join(HERE, 'node_modules'), join(folder, 'node_modules'))
  writeFileSync(join(folder, 'manifests.ts'), program)
  const options = ['--noEmit', '--strict', '--skipLibCheck', '--module', 'nodenext', '--ignoreConfig']
  const compiler = join(ROOT, 'node_modules/.bin/tsc')
  return spawnSync(compiler, [...options, join(folder, 'manifests.ts')], { stdio: 'inherit' }).status === 0
})

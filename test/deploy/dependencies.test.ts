// What npm installs: it must fit the Node.js that package.json and the README ask for.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'

const { subset } = createRequire(import.meta.url)('semver') as { subset: (range: string, of: string) => boolean }
const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')
const { engines } = JSON.parse(read('package.json')) as { engines: { node: string } }

describe('npm ci', () => {
  it('installs no package that refuses a Node.js which package.json allows', () => {
    const { packages } = JSON.parse(read('package-lock.json')) as {
      packages: Record<string, { engines?: { node?: string } }>
    }
    const refusing = Object.entries(packages).filter(([, { engines: its }]) => !subset(engines.node, its?.node ?? '*'))
    assert.deepEqual(
      refusing.map(([path, { engines: its }]) => `${path} needs ${its?.node}`),
      [],
    )
  })

  it('needs the Node.js that the README asks for', () => {
    assert.equal(engines.node, '^20.19.0 || >=22.12.0')
    assert.match(read('README.md'), /Node\.js 20\.19, or 22\.12 or later, and npm/)
  })
})

interface Package {
  dependencies: Record<string, string>
  optionalDependencies: Record<string, string>
  devDependencies: Record<string, string>
}

describe('A dependency', () => {
  const { dependencies, optionalDependencies, devDependencies } = JSON.parse(read('package.json')) as Package

  it('has a documented reason, and an exact version', () => {
    const documented = new Set(
      Array.from(read('docs/dependencies.md').matchAll(/^\| (`[^|]*`) \| /gm), ([, names = '']) =>
        names.split(', ').map((name) => name.replaceAll('`', '')),
      ).flat(),
    )
    const all = { ...dependencies, ...optionalDependencies, ...devDependencies }
    assert.deepEqual([...documented].toSorted(), Object.keys(all).toSorted())
    for (const [name, version] of Object.entries(all)) assert.match(version, /^\d+\.\d+\.\d+(?:-[\w.]+)?$/, name)
  })

  it('that the service runs on has no install script', () => {
    const { packages } = JSON.parse(read('package-lock.json')) as {
      packages: Record<string, { dev?: boolean; hasInstallScript?: boolean }>
    }
    const scripted = Object.entries(packages).filter(([, { dev, hasInstallScript }]) => hasInstallScript && !dev)
    assert.deepEqual(
      scripted.map(([path]) => path),
      [],
    )
  })

  it('is in the bill of materials, the vendored reference too, and no tool of development', () => {
    const bom = JSON.parse(
      execFileSync(process.execPath, [fileURLToPath(new URL('../../deploy/sbom.ts', import.meta.url))], {
        encoding: 'utf8',
      }),
    ) as { bomFormat: string; components: { name: string }[] }
    const names = new Set(bom.components.map(({ name }) => name))
    assert.equal(bom.bomFormat, 'CycloneDX')
    for (const name of [...Object.keys(dependencies), '@scalar/api-reference']) assert.ok(names.has(name), name)
    for (const name of ['typescript', 'oxlint', 'fast-check']) assert.ok(!names.has(name), name)
  })
})

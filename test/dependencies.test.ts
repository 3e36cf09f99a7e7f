// What npm installs: it must fit the Node.js that package.json and the README ask for.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { describe, it } from 'node:test'

const { subset } = createRequire(import.meta.url)('semver') as { subset: (range: string, of: string) => boolean }
const read = (path: string) => readFileSync(new URL(`../${path}`, import.meta.url), 'utf8')
const { engines } = JSON.parse(read('package.json')) as { engines: { node: string } }

describe('npm ci', () => {
  it('installs no package that refuses a Node.js which package.json allows', () => {
    const { packages } = JSON.parse(read('package-lock.json')) as { packages: Record<string, { engines?: { node?: string } }> }
    const refusing = Object.entries(packages).filter(([, { engines: its }]) => !subset(engines.node, its?.node ?? '*'))
    assert.deepEqual(refusing.map(([path, { engines: its }]) => `${path} needs ${its?.node}`), [])
  })

  it('needs the Node.js that the README asks for', () => {
    assert.equal(engines.node, '^20.19.0 || >=22.12.0')
    assert.match(read('README.md'), /Node\.js 20\.19, or 22\.12 or later, and npm/)
  })
})

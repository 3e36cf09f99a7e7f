// Every command of every document works as it stands there, or is listed with the reason why no test of `npm test` runs it.
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { samplePet } from '../harness/databases/sample-pet.ts'
import { BLOCKS, missingProgram, runBlock } from './documented-commands.ts'
import { type Petstore, startPetstore } from '../harness/harness.ts'

/** What a block has if it can't be run here, each with its reason. */
const NOT_RUN: readonly [program: RegExp, reason: string][] = [
  [/\bnpx\b/, 'it downloads a tool; npm run drill generated-clients runs it'],
  [/\bnpm (?:pack|install)\b/, 'it installs the client; npm run test:package runs it'],
  [/\bnpm (?:ci|start|test|run check)\b/, 'it installs everything, or runs this test; the gate runs it'],
  [/\b(?:useradd|systemctl|runuser|apt-get)\b| \/(?:etc|opt|usr|var)\//, 'it needs root, and changes the machine'],
  [/\bdocker\b/, 'it needs a Docker engine'],
  [/\bkubectl\b/, 'it needs a Kubernetes cluster'],
]

/** More than a page has. */
const ANIMALS = 120

describe('The commands of the documents', () => {
  let service: Petstore
  before(async () => {
    service = await startPetstore()
    await service.store.pets.createMany(Array.from({ length: ANIMALS }, () => ({ ...samplePet, status: 'available' })))
  })
  after(() => service[Symbol.asyncDispose]())

  for (const block of BLOCKS) {
    const [, reason] = NOT_RUN.find(([program]) => program.test(block.text)) ?? []
    if (reason !== undefined) continue
    const missing = missingProgram(block)
    it(`work as they stand there: ${block.place}`, { skip: missing && `${missing} is not installed` }, async () => {
      const { code, stdout, stderr } = await runBlock(block, service)
      assert.equal(code, 0, stdout + stderr)
      assert.doesNotMatch(stderr, /^(?:curl|jq|sh|petstore): /m)
      if (/\bwhile\b/.test(block.text)) assert.ok(stdout.split('\n').length > ANIMALS, 'it prints every page')
    })
  }

  it('are run, except for those that need what is not here: the list has no other reasons', () => {
    for (const [program, reason] of NOT_RUN)
      assert.ok(
        BLOCKS.some(({ text }) => program.test(text)),
        `no block needs ${program}: ${reason}`,
      )
  })
})

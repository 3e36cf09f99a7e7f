// Hints name the program in a way that works when it is typed again.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { programName } from './terminal.ts'

const LAUNCHER = '/opt/petstore/bin/petstore'
const name = (called: string | undefined, folder = '/opt/petstore') =>
  programName(called, LAUNCHER, folder, '/usr/bin:/opt/petstore/bin')

describe('programName', () => {
  it('is the bare name where the shell finds it', () => assert.equal(name('/opt/petstore/bin/petstore'), 'petstore'))
  it('is the path as it was typed', () => {
    for (const path of ['bin/petstore', '../petstore/bin/petstore', '/srv/petstore/bin/petstore'])
      assert.equal(name(path), path)
  })
  it('is the launcher, from the working directory, where there was none, as in npm start', () => {
    assert.equal(name(undefined), 'bin/petstore')
    assert.equal(name(undefined, '/opt/petstore/deploy'), '../bin/petstore')
  })
  it('is quoted where a shell would split it', () =>
    assert.equal(name('/srv/my pets/petstore'), "'/srv/my pets/petstore'"))
})

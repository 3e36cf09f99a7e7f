// What a person sees on a terminal: progress, speed, colours, tables; and hints that work when they are typed again.
import assert from 'node:assert/strict'
import { Writable } from 'node:stream'
import { describe, it } from 'node:test'
import { accent, clearProgress, programName, showProgress, type Terminal } from './terminal.ts'

function fakeTerminal(isTTY: boolean, env: Record<string, string> = {}) {
  let text = ''
  const stream = Object.assign(
    new Writable({
      write(chunk: Buffer, _encoding, done) {
        text += chunk.toString()
        done()
      },
    }),
    { isTTY },
  )
  return { terminal: { env, stdout: stream, stderr: stream } as Partial<Terminal> as Terminal, written: () => text }
}

describe('Progress', () => {
  const bar = (filled: number) => '█'.repeat(filled) + '░'.repeat(30 - filled)

  it('is a bar in one line, which ends when everything is done', () => {
    const { terminal, written } = fakeTerminal(true)
    showProgress(terminal, 0, 60)
    showProgress(terminal, 31, 60, 'rows')
    showProgress(terminal, 60, 60)
    clearProgress(terminal)
    assert.equal(
      written(),
      `\r\u001B[K${bar(0)} 0 of 60\r\u001B[K${bar(16)} 31 of 60  rows\r\u001B[K${bar(30)} 60 of 60\n\r\u001B[K`,
    )
  })

  it('is not written to a file', () => {
    const { terminal, written } = fakeTerminal(false)
    showProgress(terminal, 1, 2)
    clearProgress(terminal)
    assert.equal(written(), '')
  })
})

describe('Colours', () => {
  it('are for terminals of people who have not opted out', () => {
    const coloured = (isTTY: boolean, env?: Record<string, string>) =>
      accent(fakeTerminal(isTTY, env).terminal, 'name') !== 'name'
    for (const env of [{}, { NO_COLOR: '' }, { TERM: 'xterm' }]) assert.ok(coloured(true, env))
    for (const env of [{ NO_COLOR: '1' }, { TERM: 'dumb' }]) assert.ok(!coloured(true, env))
    assert.ok(!coloured(false))
  })
})

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

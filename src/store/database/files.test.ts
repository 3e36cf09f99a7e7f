// A file that is complete or missing: what is on the disk, and in which order.
import assert from 'node:assert/strict'
import fs from 'node:fs'
import { mkdtempDisposable } from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { it } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { writeWholeFile } from './files.ts'

it('A file is on the disk before it gets its name, and its name is before the call resolves', async ({ mock }) => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'petstore-test-'))
  const { openSync, closeSync } = fs
  const opened = new Map<number, string>()
  const steps: string[] = []
  mock.method(fs, 'openSync', (path: string, mode: string) => {
    const descriptor = openSync(path, mode)
    opened.set(descriptor, path)
    return descriptor
  })
  mock.method(fs, 'fsyncSync', (descriptor: number) => steps.push(`sync ${opened.get(descriptor)}`))
  mock.method(fs, 'closeSync', (descriptor: number) => {
    opened.delete(descriptor)
    closeSync(descriptor)
  })
  const rename = mock.method(fs, 'renameSync')
  syncBuiltinESMExports()
  try {
    let partial = ''
    const file = join(folder.path, 'pets.csv')
    const written = await writeWholeFile(file, (name) => {
      rename.mock.mockImplementationOnce(() => steps.push('rename'))
      partial = name
      fs.writeFileSync(name, 'Rex')
      return 'written'
    })
    assert.deepEqual([written, opened.size], ['written', 0])
    assert.deepEqual(steps, [`sync ${partial}`, 'rename', `sync ${folder.path}`])
    assert.deepEqual(rename.mock.calls[0]?.arguments, [partial, file])
    assert.equal(dirname(partial), folder.path, 'on the same disk: no file can be renamed across disks')
  } finally {
    mock.restoreAll()
    syncBuiltinESMExports()
  }
})

it('A file that two write at once is whole, and no file that was beside it is touched', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'petstore-test-'))
  const file = join(folder.path, 'pets.csv')
  fs.writeFileSync(`${file}.partial`, 'mine')
  const write = (text: string) =>
    writeWholeFile(file, async (partial) => {
      for (const letter of text) {
        fs.appendFileSync(partial, letter)
        await setImmediate()
      }
    })
  await Promise.all([write('one and all'), write('another one')])
  assert.match(fs.readFileSync(file, 'utf8'), /^(?:one and all|another one)$/)
  assert.deepEqual(fs.readdirSync(folder.path).toSorted(), ['pets.csv', 'pets.csv.partial'])
  assert.equal(fs.readFileSync(`${file}.partial`, 'utf8'), 'mine')
})

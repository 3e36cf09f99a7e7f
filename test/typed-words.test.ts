// What was typed in the wrong place, or named by someone else, as the command line repeats it on a terminal.
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { generateKey } from '../src/accounts/api-keys.ts'
import { Folder } from './command.ts'

const EMAIL = 'you@example.com'

describe('petstore, given odd words', { concurrency: 3 }, () => {
  it('refuses an option that has the name of a property of every object', async () => {
    await using folder = await Folder.create()
    for (const option of ['--constructor', '--constructor=5', '--__proto__=5', '--toString=5']) {
      const { code, stderr } = await folder.run(['seed', '--count', '1', option])
      assert.equal(code, 2, option)
      assert.match(stderr, /^petstore: seed has no option --\w+\.\n/, option)
    }
  })

  it('repeats no API key and no control character in a message', async () => {
    await using folder = await Folder.create()
    await folder.run(['migrate', '--environment', 'staging'])
    const key = generateKey('staging')
    const lines = [
      ['key', 'revoke', key],
      ['key', 'revoke', 'x', key],
      ['key', key],
      [key],
      ['seed', '--count', key],
      ['seed', `--${key}`],
      ['account', 'create', key],
      ['key', 'create', '--account', key, '--name', 'x'],
      ['serve', '--port', key],
    ]
    for (const words of lines) {
      const { code, stderr } = await folder.run([
        ...words.slice(0, -1),
        words.at(-1)!.replace(key, `${key}\u001B[2J\u202E`),
      ])
      assert.notEqual(code, 0)
      assert.match(stderr, /pets_test_…/, stderr)
      assert.ok(!stderr.includes(key.slice(-20)), stderr)
      assert.doesNotMatch(stderr.replaceAll('\n', ''), /[\p{Cc}\u202E]/u)
    }
  })

  it('shows a name without what would turn the line around, in every command', async () => {
    await using folder = await Folder.create()
    await folder.run(['migrate', '--environment', 'staging'])
    await folder.run(['account', 'create', EMAIL, '--password-stdin'], { input: 'correct horse battery' })
    const made = await folder.run(['key', 'create', '--account', EMAIL, '--name', 'a\u202Eb\u2028c'])
    assert.equal(made.code, 0, made.stderr)
    const { stdout } = await folder.run(['key', 'list'])
    assert.ok(stdout.includes(String.raw`a\u202eb\u2028c`), stdout)
    const [id = ''] = stdout.split(' ')
    const email = 'o\u202Eneil@example.com'
    const animals = 'animals\u202E\n\u001B[2J.csv'
    writeFileSync(join(folder.path, animals), `name,categoryId\n${'Rex,1\n'.repeat(1000)}`)
    await folder.runInProcess(['import', animals], {
      stopSignal: () => Promise.resolve('SIGINT'),
    })
    const lines = [
      ['key', 'revoke', id],
      ['key', 'revoke', id],
      ['key', 'list', '--json'],
      ['account', 'create', email, '--password-stdin'],
      ['account', 'list'],
      ['key', 'list', '--account', email],
      ['account', 'password', email, '--password-stdin'],
      ['account', 'remove', email, '--yes'],
      ['import', 'none\u202E.csv'],
      ['backup', 'copy\u202E.db'],
      ['restore', 'copy\u202E.db', '--database', 'sqlite:new\u202E.db'],
      ['doctor'],
      ['doctor', '--json'],
    ]
    for (const words of lines) {
      const ended = await folder.runInProcess(words, { input: 'correct horse battery' })
      const shown = ended.stdout + ended.stderr
      assert.match(shown, /\\u202e/, `${words.join(' ')}: ${shown}`)
      assert.doesNotMatch(shown.replaceAll('\n', ''), /[\p{Cc}\u202E\u2028]/u)
      assert.doesNotMatch(shown, /^\S*\.csv/m, 'a name begins no line')
    }
  })
})

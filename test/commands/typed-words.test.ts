// What was typed in the wrong place, or named by someone else, as the command line repeats it on a terminal.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { generateKey } from '../../src/accounts/api-keys.ts'
import { collect } from '../harness/programs/processes.ts'
import { Folder, hasTerminal } from '../harness/programs/command.ts'
import { askDatabase } from '../harness/databases/database-schema.ts'

const EMAIL = 'you@example.com'

describe('petstore, given odd words', { concurrency: 3 }, () => {
  it('repeats no API key and no control character in a message', async () => {
    await using folder = await Folder.create()
    await folder.commands.call(0, 'migrate --environment staging')
    const key = generateKey('staging')
    for (const line of [
      'key revoke KEY',
      'key revoke x KEY',
      'key KEY',
      'KEY',
      'seed --count KEY',
      'seed --KEY',
      'account create KEY',
      'key create --name x --account KEY',
      'serve --port KEY',
    ]) {
      const { code, stderr } = await folder.commands.run(line.replaceAll('KEY', `${key}\u001B[2J\u202E`))
      assert.notEqual(code, 0)
      assert.match(stderr, /pets_test_…/, stderr)
      assert.ok(!stderr.includes(key.slice(-20)), stderr)
      assert.doesNotMatch(stderr.replaceAll('\n', ''), /[\p{Cc}\u202E]/u)
    }
  })

  it('shows the animals of an export on a terminal without what would control it, and pipes them exactly', async () => {
    await using folder = await Folder.create()
    await folder.commands.call(0, 'migrate --environment staging')
    const name = 'R\u001B]0;x\u0007e\u009B2Jx\u202E\ty'
    folder.write('animals.csv', `name,categoryId\n"${name}",1\n`)
    await folder.commands.call(0, 'import animals.csv')
    const shown = String.raw`R\u001b]0;x\u0007e\u009b2Jx\u202e`
    for (const [line, tab] of [
      ['export - --format csv', '\t'],
      ['export - --format jsonl', String.raw`\t`],
    ] as const) {
      assert.ok((await folder.commands.call(0, line, { isTTY: true })).stdout.includes(`${shown}${tab}y"`), line)
      const piped = (await folder.commands.call(0, line)).stdout
      assert.ok(piped.includes(line.endsWith('csv') ? `"${name}"` : JSON.stringify(name)), line)
    }
    if (!hasTerminal) return
    const { stdout } = await collect(folder.startOnTerminal('export - --format csv'))
    assert.ok(stdout.includes(`"${shown}\ty",1,available,`) && !stdout.includes('\u001B]0'), stdout)
  })

  it('shows a name without what would turn the line around, in every command', async () => {
    await using folder = await Folder.create()
    const input = 'correct horse battery'
    await folder.commands.call(0, 'migrate --environment staging')
    await folder.commands.call(0, `account create ${EMAIL} --password-stdin`, { input })
    await folder.commands.call(0, `key create --account ${EMAIL} --name a\u202Eb\u2028c`)
    const { stdout } = await folder.run(['key', 'list'])
    assert.ok(stdout.includes(String.raw`a\u202eb\u2028c`), stdout)
    const [id = ''] = stdout.split(' ')
    const email = 'o\u202Eneil@example.com'
    const plain = 'neil@example.com'
    await folder.commands.call(0, `account create ${plain} --password-stdin`, { input })
    // As an earlier release has stored it.
    const database = `sqlite:${folder.path}/data/petstore.db`
    await askDatabase(
      database,
      `UPDATE accounts SET email = '${email}', email_folded = '${email}' WHERE email = '${plain}'`,
    )
    const animals = 'animals\u202E\n\u001B[2J.csv'
    folder.write(animals, `name,categoryId\n${'Rex,1\n'.repeat(1000)}`)
    await folder.commands.call(130, ['import', animals], { stopSignal: async () => 'SIGINT' })
    for (const line of [
      `key revoke ${id}`,
      `key revoke ${id}`,
      'key list --json',
      `account create ${email} --password-stdin`,
      'account list',
      `key list --account ${email}`,
      `account password ${email} --password-stdin`,
      `account remove ${email} --yes`,
      'import none\u202E.csv',
      'backup copy\u202E.db',
      'restore copy\u202E.db --database sqlite:new\u202E.db',
      'doctor',
      'doctor --json',
    ]) {
      const ended = await folder.commands.run(line, { input })
      const shown = ended.stdout + ended.stderr
      assert.match(shown, /\\u202e/, `${line}: ${shown}`)
      assert.doesNotMatch(shown.replaceAll('\n', ''), /[\p{Cc}\u202E\u2028]/u)
      assert.doesNotMatch(shown, /^\S*\.csv/m, 'a name begins no line')
    }
  })
})

// Every command explains itself, and what is typed after its name is read or refused. test/commands/commands.test.ts runs them.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type Command, findCommand, UsageError } from './command.ts'
import { COMMANDS, parseWords, unknownCommand } from './commands.ts'
import { helpFor } from './help.ts'

/** The words of the part of an example that calls the program. */
function wordsOf(example: string): string[] {
  return /(?<=^|[\s(])petstore ([^|)<>#]*)/.exec(example)![1]!.trim().split(' ')
}

describe('Every command', () => {
  for (const command of COMMANDS) {
    const { name, summary, options, examples, takes = [] } = command
    it(`has examples that work as they are, and says what each option means: ${name}`, () => {
      assert.ok(examples.length > 0)
      for (const example of examples) {
        const words = wordsOf(example)
        assert.equal(findCommand(COMMANDS, words), command, example)
        const { positionals } = parseWords(command, words.slice(name.split(' ').length))
        assert.ok(positionals.length > 0 || takes.length === 0, example)
      }
      const help = helpFor(command, 'bin/petstore')
      assert.ok(help.startsWith(`petstore ${name}: ${summary}\n\nExamples\n  `))
      assert.ok(summary.length > 5)
      assert.ok(help.includes(`Usage\n  bin/petstore ${[name, ...takes].join(' ')}`))
      for (const [flag, { meaning, value }] of Object.entries(options)) {
        assert.ok(meaning.length > 5)
        assert.match(
          help,
          new RegExp(`\n  --${flag}${value === undefined ? '' : ` ${value}`} +${RegExp.escape(meaning)}`),
        )
      }
      assert.equal(help.includes('\nOptions\n'), Object.keys(options).length > 0)
      assert.equal(help.includes(' [OPTIONS]\n'), Object.keys(options).length > 0)
    })
  }
})

describe('The words after a command', () => {
  const command: Command = {
    name: 'walk',
    summary: 'Walk a dog',
    takes: ['DOG'],
    options: { far: { meaning: 'Far' }, minutes: { value: 'N', meaning: 'How long' } },
    examples: [],
    run: async () => {},
  }

  it('are its arguments, its options with a value and its switches, in any order', () => {
    for (const line of ['Rex --far --minutes -30', '--minutes=-30 Rex --far', '--far --minutes -30 -- Rex'])
      assert.deepEqual(
        parseWords(command, line.split(' ')),
        { positionals: ['Rex'], flags: { minutes: '-30' }, switches: { far: true } },
        line,
      )
    assert.deepEqual(parseWords(command, ['--minutes=--x', 'Rex']), {
      positionals: ['Rex'],
      flags: { minutes: '--x' },
      switches: {},
    })
  })

  const refused: Record<string, string> = {
    'Rex --fra': 'walk has no option --fra. Did you mean --far?',
    'Rex --constructor': 'walk has no option --constructor.',
    'Rex -f': 'walk has no option -f.',
    'Rex --far=yes': '--far takes no value, got "yes".',
    'Rex --minutes': '--minutes needs a value: --minutes N.',
    'Rex --minutes --far': '--minutes needs a value: --minutes N.',
    'Rex --minutes -x': '--minutes needs a value: --minutes N.',
    '--far': 'walk takes DOG, got none.',
    'Rex Kit': 'walk takes DOG, got Rex Kit.',
    // Of an unset variable of the shell, as in walk "$DOG".
    '': 'walk takes DOG, got none.',
  }
  for (const [line, message] of Object.entries(refused))
    it(`are refused, with the reason: ${line}`, () =>
      assert.throws(() => parseWords(command, line.split(' ')), new UsageError(message)))

  it('are refused where it takes none', () => {
    const words = ['a', 'b']
    assert.throws(() => parseWords({ ...command, takes: [] }, words), /walk takes no arguments, got a b\./)
  })
})

describe('A command that does not exist', () => {
  const messages: Record<string, string> = {
    serv: 'There is no command "serv". Did you mean serve?',
    'key craete': 'There is no command "key craete". Did you mean key create?',
    'key purr': 'There is no command "key purr". There are key create, key list, key revoke.',
    key: 'Which command? key create, key list, key revoke.',
    'kye create': 'There is no command "kye". Did you mean key create?',
    kye: 'There is no command "kye". Did you mean key?',
    hepl: 'There is no command "hepl". Did you mean help?',
    'keys create --name laptop': 'There is no command "keys". Did you mean key create?',
    purr: 'There is no command "purr".',
  }
  for (const [line, message] of Object.entries(messages))
    it(`is answered with the nearest ones: ${line}`, () => assert.equal(unknownCommand(line.split(' ')), message))
})

// Completion in the shells that people use: the real ones, where they are installed, with the real program.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { describe, it } from 'node:test'
import { SEARCH_PATH } from './command.ts'
import { petstore } from './in-process-command.ts'

async function words(...typed: string[]): Promise<string[]> {
  const { code, stdout } = await petstore(['complete', '--', ...typed])
  assert.equal(code, 0)
  return stdout
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => line.split('\t')[0]!)
}

describe('petstore complete', () => {
  it('lists the commands, and what can follow of them', async () => {
    assert.deepEqual(await words(''), [
      'serve',
      'migrate',
      'account',
      'key',
      'environment',
      'seed',
      'import',
      'export',
      'copy',
      'backup',
      'restore',
      'doctor',
      'openapi',
      'completion',
      'help',
    ])
    assert.deepEqual(await words('k'), ['key'])
    assert.deepEqual(await words('key', ''), ['create', 'list', 'revoke'])
    assert.deepEqual(await words('help', 'key', 'cr'), ['create'])
    assert.deepEqual(await words('purr', ''), [])
  })

  it('lists the options that are not given yet, and the values of those that have a choice', async () => {
    assert.deepEqual(await words('key', 'list', '--'), ['--account', '--json', '--database'])
    assert.deepEqual(await words('key', 'list', '--json', '--a'), ['--account'])
    assert.deepEqual(await words('key', 'list', '--json', '--j'), [])
    assert.deepEqual(await words('key', 'list', '--account', ''), [])
    assert.deepEqual(await words('serve', '--log-level', ''), ['error', 'warn', 'notice', 'info', 'debug'])
    assert.deepEqual(await words('serve', '--environment', 'p'), ['production'])
    assert.deepEqual(await words('environment', 'set', 's'), ['staging'])
    assert.deepEqual(await words('environment', 'set', '--database', 'sqlite:x', 'p'), ['production'])
    assert.deepEqual(await words('environment', 'set', 'staging', ''), ['--yes', '--json', '--database'])
    assert.deepEqual(await words('completion', ''), ['bash', 'zsh', 'fish'])
    assert.deepEqual(await words('key', 'list', '--help'), [], 'what is typed so far does not ask for help')
  })
})

/** How each shell is asked, without a person, for what could follow `petstore key cr` and `petstore environment set `. */
const ASKING: Record<string, readonly string[]> = {
  bash: [
    '-c',
    `source <(petstore completion bash)
    ask() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _petstore; echo "\${COMPREPLY[*]}"; }
    ask petstore key cr
    ask petstore environment set ""`,
  ],
  zsh: [
    '-c',
    `compdef() { :; }
    _describe() { local -a shown=("\${(@P)2}"); print -r -- "\${shown[@]%%:*}"; }
    source <(petstore completion zsh)
    ask() { local -a words=("$@"); local CURRENT=$#; _petstore; }
    ask petstore key cr
    ask petstore environment set ""`,
  ],
  fish: [
    '--no-config',
    '-c',
    `petstore completion fish | source; complete -C 'petstore key cr' | string replace -r '\\t.*' ''; string join -- ' ' (complete -C 'petstore environment set ' | string replace -r '\\t.*' '')`,
  ],
}

describe('petstore completion', () => {
  it('prints the script of each shell, and refuses others', async () => {
    for (const shell of Object.keys(ASKING)) {
      const { code, stdout } = await petstore(['completion', shell])
      assert.equal(code, 0)
      assert.match(stdout, / complete -- /)
    }
    for (const shell of ['tcsh', 'constructor'])
      assert.deepEqual(await petstore(['completion', shell]), {
        code: 2,
        stdout: '',
        stderr: `petstore: SHELL must be bash, zsh, fish, got "${shell}".\nSee: petstore help completion\n`,
      })
  })

  for (const [shell, parameters] of Object.entries(ASKING)) {
    const isInstalled = spawnSync(shell, ['--version']).status === 0
    if (isInstalled)
      it(`makes ${shell} complete commands and values`, () => {
        const { stdout, stderr } = spawnSync(shell, [...parameters], {
          encoding: 'utf8',
          env: { PATH: SEARCH_PATH, HOME: '/nonexistent', TERM: 'dumb' },
        })
        assert.deepEqual(
          stdout
            .trimEnd()
            .split('\n')
            .map((line) =>
              line
                .split(' ')
                .filter((word) => !word.startsWith('-'))
                .join(' '),
            ),
          ['create', 'production staging'],
          stderr,
        )
      })
  }
})

// Completion in the shells that people use: the real ones, where they are installed, with the real program.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { describe, it } from 'node:test'
import { SEARCH_PATH } from './command.ts'
import { petstore } from './in-process-command.ts'

async function words(...typed: string[]): Promise<string[]> {
  const { code, stdout } = await petstore(['complete', '--', ...typed])
  assert.equal(code, 0)
  const lines = stdout.split('\n').filter((line) => line !== '')
  return lines.map((line) => line.split('\t')[0]!)
}

describe('petstore complete', () => {
  const groups =
    'serve migrate account key environment seed import export copy partition distribute backup restore doctor health mcp openapi completion help'
  const FOLLOWING: [typed: string[], following: string][] = [
    [[''], groups],
    [['k'], 'key'],
    [['key', ''], 'create list revoke'],
    [['help', 'key', 'cr'], 'create'],
    [['purr', ''], ''],
    [['key', 'list', '--'], '--account --json --database'],
    [['key', 'list', '--json', '--a'], '--account'],
    [['key', 'list', '--json', '--j'], ''],
    [['key', 'list', '--account', ''], ''],
    [['serve', '--log-level', ''], 'error warn notice info debug'],
    [['serve', '--environment', 'p'], 'production'],
    [['environment', 'set', 's'], 'staging'],
    [['environment', 'set', '--database', 'sqlite:x', 'p'], 'production'],
    [['environment', 'set', 'staging', ''], '--yes --json --database'],
    [['completion', ''], 'bash zsh fish'],
    // What is typed so far does not ask for help.
    [['key', 'list', '--help'], ''],
  ]
  for (const [typed, following] of FOLLOWING)
    it(`lists the commands, options that are not given yet, or values that can follow: ${typed.join(' ')}`, async () =>
      assert.equal((await words(...typed)).join(' '), following))
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
        const [first, second = ''] = stdout.trimEnd().split('\n')
        const names = second.split(' ').filter((word) => !word.startsWith('-'))
        assert.deepEqual([first, names], ['create', ['production', 'staging']], stderr)
      })
  }
})

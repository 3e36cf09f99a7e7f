// Reads a new password: asks for it on a terminal, twice, or takes it from standard input.
import { PASSWORD_MIN_LENGTH, passwordProblem } from '../accounts/passwords.ts'
import { CommandFailed, type Input, type Option, UsageError } from './command.ts'
import { askHidden, readAll } from './terminal.ts'

export const PASSWORD_OPTION: Option = { type: 'boolean', meaning: 'Read the password from standard input' }

export async function readPassword({ terminal, switches }: Input): Promise<string> {
  if (switches['password-stdin']) return accepted(await readAll(terminal.stdin))
  if (!terminal.stdin.isTTY) throw new UsageError('Give the password on standard input, with --password-stdin.')
  const password = accepted(await askHidden(terminal, `Password (at least ${PASSWORD_MIN_LENGTH} characters): `))
  if (password === (await askHidden(terminal, 'The same password again: '))) return password
  throw new CommandFailed('The two passwords differ; nothing was changed.')
}

function accepted(password: string): string {
  const problem = passwordProblem(password)
  if (problem === undefined) return password
  throw new CommandFailed(problem)
}

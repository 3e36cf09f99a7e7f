// Reads the words after a command's name: options and positional arguments, with messages of our own.
import { parseArgs } from 'node:util'
import { redactValue } from '../contract/redact.ts'
import { type Command, type Input, type Option, UsageError } from './command.ts'
import { didYouMean } from './suggest.ts'

type Parsed = Pick<Input, 'positionals' | 'flags' | 'switches'>

/** Throws `UsageError`. */
export function parseWords(command: Command, words: readonly string[]): Parsed {
  const { name, takes, options } = command
  const types = Object.fromEntries(Object.entries(options).map(([option, { type }]) => [option, { type }]))
  const { tokens, positionals } = parseArgs({
    args: [...words],
    options: types,
    allowPositionals: true,
    strict: false,
    tokens: true,
  })
  const parsed: Parsed = { positionals, flags: {}, switches: {} }
  for (const token of tokens) {
    if (token.kind !== 'option') continue
    // Not just any property: every object has a constructor.
    const option = Object.hasOwn(options, token.name) ? options[token.name] : undefined
    if (option === undefined || !token.rawName.startsWith('--'))
      throw new UsageError(unknownOption(command, token.rawName))
    const value = valueOf(option, token)
    if (value === undefined) parsed.switches[token.name] = true
    else parsed.flags[token.name] = value
  }
  if (positionals.length === takes.length || takes[0]?.endsWith('…')) return parsed
  const expected = takes.length === 0 ? 'no arguments' : takes.join(' ')
  throw new UsageError(
    `${name} takes ${expected}, got ${positionals.length === 0 ? 'none' : positionals.map(redactValue).join(' ')}.`,
  )
}

interface OptionToken {
  rawName: string
  value?: string | undefined
  inlineValue?: boolean | undefined
}

/** Returns undefined for an option that takes no value. */
function valueOf(
  { type, value: placeholder }: Option,
  { rawName, value, inlineValue }: OptionToken,
): string | undefined {
  if (type === 'boolean') {
    if (value === undefined) return undefined
    throw new UsageError(`${rawName} takes no value, got ${JSON.stringify(redactValue(value))}.`)
  }
  // The next word is an option of its own; a value that looks like one is written --name=--value. A number may be negative.
  const isOption = !inlineValue && /^--?[^0-9]/.test(value ?? '')
  if (value !== undefined && !isOption) return value
  throw new UsageError(`${rawName} needs a value: ${rawName} ${placeholder}.`)
}

function unknownOption({ name, options }: Command, rawName: string): string {
  return `${name} has no option ${rawName}.${didYouMean(
    rawName,
    Object.keys(options).map((option) => `--${option}`),
  )}`
}

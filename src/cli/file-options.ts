// The option --format of import and export.
import { extname } from 'node:path'
import { type Option, UsageError } from './command.ts'

const FORMATS = ['csv', 'jsonl'] as const
export type Format = (typeof FORMATS)[number]

export const FORMAT_OPTION: Option = {
  value: 'FORMAT',
  meaning: `${FORMATS.join(' or ')}; by default as the file's name ends`,
}

export function formatOf(name: string, flag: string | undefined): Format {
  const ending = extname(name).slice(1).toLowerCase()
  const sought = flag ?? (ending === 'ndjson' ? 'jsonl' : ending)
  const format = FORMATS.find((candidate) => candidate === sought)
  if (format !== undefined) return format
  if (flag !== undefined) throw new UsageError(`--format must be ${FORMATS.join(' or ')}, got ${JSON.stringify(flag)}.`)
  throw new UsageError(`The format of ${name} is unknown; name it with --format csv or --format jsonl.`)
}

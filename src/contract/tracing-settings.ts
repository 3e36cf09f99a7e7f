// OpenTelemetry's standard variables that the service reads. They have no flags. Choices are in upper or lower case. A variable
// with TRACES in its name replaces the one without; an invalid value is refused, where OpenTelemetry would ignore it.
import { unescape } from 'node:querystring'
import { redactAddress } from './text/redact.ts'

type Texts = Record<string, string | undefined>
type Setting = { allowed: string; parse: (text: string) => unknown; redact?: (text: string) => string }
type Parse = (setting: Setting, name: string, text: string) => unknown

const parseShare = (text: string) => (/^[\d.][\d.e-]*$/i.test(text) && Number(text) <= 1 ? Number(text) : undefined)
const matching = (pattern: RegExp) => (text: string) => (pattern.test(text) ? text.toLowerCase() : undefined)
const PAIRS = { allowed: 'NAME=VALUE pairs, separated by commas, in ASCII or percent-encoded', parse: parsePairs }

const ENDPOINT = {
  allowed: 'an http or https URL without user, password, query and fragment',
  parse: parseEndpoint,
  redact: redactAddress,
}
const PROTOCOL = { allowed: 'http/json', parse: matching(/^http\/json$/i) }
const HEADERS = { ...PAIRS, redact: () => '***' }
/** The longest time of a timer; OpenTelemetry's 0 means no limit. */
const LONGEST_MS = 2 ** 31 - 1
const TIMEOUT = { allowed: `milliseconds from 0 to ${LONGEST_MS}`, parse: parseTimeout }

export const TRACING_VARIABLES = {
  OTEL_SDK_DISABLED: { allowed: 'true or false', parse: matching(/^(?:true|false)$/i) },
  OTEL_TRACES_EXPORTER: { allowed: 'otlp or none', parse: matching(/^(?:otlp|none)$/i) },
  OTEL_EXPORTER_OTLP_ENDPOINT: ENDPOINT,
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: ENDPOINT,
  OTEL_EXPORTER_OTLP_PROTOCOL: PROTOCOL,
  OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: PROTOCOL,
  OTEL_EXPORTER_OTLP_HEADERS: HEADERS,
  OTEL_EXPORTER_OTLP_TRACES_HEADERS: HEADERS,
  OTEL_EXPORTER_OTLP_TIMEOUT: TIMEOUT,
  OTEL_EXPORTER_OTLP_TRACES_TIMEOUT: TIMEOUT,
  OTEL_TRACES_SAMPLER: {
    allowed: 'always_on, always_off or traceidratio, or one of them after parentbased_',
    parse: matching(/^(?:parentbased_)?(?:always_on|always_off|traceidratio)$/i),
  },
  OTEL_TRACES_SAMPLER_ARG: { allowed: 'a number from 0 to 1', parse: parseShare },
  OTEL_SERVICE_NAME: { allowed: 'a name', parse: String },
  OTEL_RESOURCE_ATTRIBUTES: PAIRS,
} satisfies Record<string, Setting>

/** Where traces are exported to, and of which requests. */
export type Tracing = NonNullable<ReturnType<typeof readTracing>>

/** Returns undefined unless an endpoint, or otlp as the exporter, is set; no other is looked at then. `parse` throws for a bad value. */
export function readTracing(env: Texts, envFile: Texts, parse: Parse) {
  type Table = typeof TRACING_VARIABLES
  const textOf = (name: keyof Table) => env[name] || envFile[name]
  const read = <Name extends keyof Table>(name: Name) => {
    const text = textOf(name)
    return text ? (parse(TRACING_VARIABLES[name], name, text) as ReturnType<Table[Name]['parse']>) : undefined
  }
  const isSet = textOf('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT') || textOf('OTEL_EXPORTER_OTLP_ENDPOINT')
  if (!isSet && textOf('OTEL_TRACES_EXPORTER')?.toLowerCase() !== 'otlp') return undefined
  if (read('OTEL_SDK_DISABLED') === 'true' || read('OTEL_TRACES_EXPORTER') === 'none') return undefined
  const own = read('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT')
  const base = own ?? read('OTEL_EXPORTER_OTLP_ENDPOINT') ?? 'http://localhost:4318'
  void (read('OTEL_EXPORTER_OTLP_TRACES_PROTOCOL') ?? read('OTEL_EXPORTER_OTLP_PROTOCOL'))
  const sampler = read('OTEL_TRACES_SAMPLER') ?? 'parentbased_always_on'
  const ratio = read('OTEL_TRACES_SAMPLER_ARG') ?? 1
  const name = read('OTEL_SERVICE_NAME')
  return {
    url: own ?? base.replace(/\/?$/, '/v1/traces'),
    headers: read('OTEL_EXPORTER_OTLP_TRACES_HEADERS') ?? read('OTEL_EXPORTER_OTLP_HEADERS'),
    timeoutMs: read('OTEL_EXPORTER_OTLP_TRACES_TIMEOUT') ?? read('OTEL_EXPORTER_OTLP_TIMEOUT') ?? 10_000,
    /** Whether the flag of a trusted caller decides. */
    isParentBased: sampler.startsWith('parentbased_'),
    /** The share of the other requests that are traced. */
    share: sampler.endsWith('ratio') ? ratio : Number(sampler.endsWith('on')),
    /** The operator's attributes of the service. */
    resource: { ...read('OTEL_RESOURCE_ATTRIBUTES'), ...(name && { 'service.name': name }) },
  }
}

function parseEndpoint(text: string): string | undefined {
  const isPlain = /^https?:\/\/[^\s/@:?#][^\s@?#]*$/i.test(text) && URL.canParse(text)
  return isPlain ? new URL(text).href : undefined
}

function parseTimeout(text: string): number | undefined {
  return /^\d{1,10}$/.test(text) && Number(text) <= LONGEST_MS ? Number(text) || LONGEST_MS : undefined
}

function parsePairs(text: string): Record<string, string> | undefined {
  // Values without control characters: for a header with one, fetch throws an error that shows it.
  if (!/^(?:\s*[^=,\s]+\s*=(?:[ -$&-+\--~]|%(?!7f)[2-9a-f][\da-f])*(?:,|$))*$/i.test(text)) return undefined
  const pairs = text.matchAll(/([^=,\s]+)\s*=([^,]*)/g)
  return Object.fromEntries(Array.from(pairs, ([, name, value]) => [unescape(name!), unescape(value!.trim())]))
}

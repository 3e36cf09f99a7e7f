// OpenTelemetry's standard variables that the service reads. They have no flags. Choices are in upper or lower case.
import { unescape } from 'node:querystring'
import { redactAddress } from './redact.ts'

type Texts = Record<string, string | undefined>
type Setting = { allowed: string; parse: (text: string) => unknown; redact?: (text: string) => string }
type Parse = (setting: Setting, name: string, text: string) => unknown

const parseShare = (text: string) => (/^[\d.][\d.e-]*$/i.test(text) && Number(text) <= 1 ? Number(text) : undefined)
const matching = (pattern: RegExp) => (text: string) => (pattern.test(text) ? text.toLowerCase() : undefined)
const PAIRS = { allowed: 'NAME=VALUE pairs, separated by commas, in ASCII or percent-encoded', parse: parsePairs }

export const TRACING_VARIABLES = {
  OTEL_EXPORTER_OTLP_ENDPOINT: {
    allowed: 'an http or https URL without user, password, query and fragment',
    parse: parseEndpoint,
    redact: redactAddress,
  },
  OTEL_SDK_DISABLED: { allowed: 'true or false', parse: matching(/^(?:true|false)$/i) },
  OTEL_EXPORTER_OTLP_PROTOCOL: { allowed: 'http/json', parse: matching(/^http\/json$/i) },
  OTEL_EXPORTER_OTLP_HEADERS: { ...PAIRS, redact: () => '***' },
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

/** Returns undefined unless an endpoint is set; the other variables are not looked at then. `parse` throws for a bad value. */
export function readTracing(env: Texts, envFile: Texts, parse: Parse) {
  type Table = typeof TRACING_VARIABLES
  const read = <Name extends keyof Table>(name: Name) => {
    const text = env[name] || envFile[name]
    return text ? (parse(TRACING_VARIABLES[name], name, text) as ReturnType<Table[Name]['parse']>) : undefined
  }
  const url = read('OTEL_EXPORTER_OTLP_ENDPOINT')
  if (url === undefined || read('OTEL_SDK_DISABLED') === 'true') return undefined
  read('OTEL_EXPORTER_OTLP_PROTOCOL')
  const sampler = read('OTEL_TRACES_SAMPLER') ?? 'parentbased_always_on'
  const ratio = read('OTEL_TRACES_SAMPLER_ARG') ?? 1
  const name = read('OTEL_SERVICE_NAME')
  return {
    url,
    headers: read('OTEL_EXPORTER_OTLP_HEADERS'),
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
  return isPlain ? new URL(text.replace(/\/?$/, '/v1/traces')).href : undefined
}

function parsePairs(text: string): Record<string, string> | undefined {
  // Values without control characters: for a header with one, fetch throws an error that shows it.
  if (!/^(?:\s*[^=,\s]+\s*=(?:[ -$&-+\--~]|%(?!7f)[2-9a-f][\da-f])*(?:,|$))*$/i.test(text)) return undefined
  const pairs = text.matchAll(/([^=,\s]+)\s*=([^,]*)/g)
  return Object.fromEntries(Array.from(pairs, ([, name, value]) => [unescape(name!), unescape(value!.trim())]))
}

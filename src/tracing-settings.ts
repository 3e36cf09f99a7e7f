// OpenTelemetry's standard variables that the service reads. They have no flags.
import { unescape } from 'node:querystring'

type Texts = Record<string, string | undefined>

const PAIRS = [
  'NAME=VALUE pairs, separated by commas, in ASCII or percent-encoded',
  // Without control characters: for a header with one, fetch throws an error that shows its value.
  /^(?:\s*[\w!#$%&'*+.^`|~-]+\s*=(?:[ -$&-+\--~]|%(?!7f)[2-9a-f][\da-f])*(?:,|$))*$/i,
  '',
] as const

/** What is allowed, in words and as a pattern, and the default. */
export const TRACING_VARIABLES = {
  OTEL_EXPORTER_OTLP_ENDPOINT: ['an http or https URL without user and password', /^https?:\/\/[^\s/@:][^\s@]*$/i, ''],
  OTEL_SDK_DISABLED: ['true or false', /^(?:true|false)$/, 'false'],
  OTEL_EXPORTER_OTLP_PROTOCOL: ['http/json', /^http\/json$/, 'http/json'],
  OTEL_EXPORTER_OTLP_HEADERS: PAIRS,
  OTEL_TRACES_SAMPLER: [
    'always_on, always_off or traceidratio, or one of them after parentbased_',
    /^(?:parentbased_)?(?:always_on|always_off|traceidratio)$/,
    'parentbased_always_on',
  ],
  OTEL_TRACES_SAMPLER_ARG: ['a number from 0 to 1', /^(?:0?\.\d+|[01](?:\.0*)?|\d(?:\.\d+)?e-\d+)$/, '1'],
  OTEL_SERVICE_NAME: ['a name', /./, ''],
  OTEL_RESOURCE_ATTRIBUTES: PAIRS,
} as const

/** Where traces are exported to, and of which requests. */
export type Tracing = NonNullable<ReturnType<typeof readTracing>>

/** Returns undefined unless an endpoint is set; the other variables are not looked at then. `parse` throws for a bad value. */
export function readTracing(
  env: Texts,
  envFile: Texts,
  parse: (setting: { allowed: string; parse: (text: string) => unknown }, variable: string, text: string) => unknown,
) {
  const read = (variable: keyof typeof TRACING_VARIABLES): string => {
    const [allowed, pattern, fallback] = TRACING_VARIABLES[variable]
    const text = env[variable] || envFile[variable] || fallback
    const isUrl = variable.endsWith('ENDPOINT')
    const isValid = () => text === '' || (pattern.test(text) && (!isUrl || URL.canParse(text)))
    // The values of headers are secrets.
    const redacted = variable.endsWith('HEADERS') && { redact: () => '***' }
    parse({ allowed, parse: () => isValid() || undefined, ...redacted }, variable, text)
    return text
  }
  const endpoint = read('OTEL_EXPORTER_OTLP_ENDPOINT')
  if (endpoint === '' || read('OTEL_SDK_DISABLED') === 'true') return undefined
  read('OTEL_EXPORTER_OTLP_PROTOCOL')
  const sampler = read('OTEL_TRACES_SAMPLER')
  const name = read('OTEL_SERVICE_NAME')
  const ratio = Number(read('OTEL_TRACES_SAMPLER_ARG'))
  return {
    url: new URL(endpoint.replace(/\/?$/, '/v1/traces')).href,
    headers: pairsOf(read('OTEL_EXPORTER_OTLP_HEADERS')),
    /** Whether the flag of a trusted caller decides. */
    isParentBased: sampler.startsWith('parentbased_'),
    /** The share of the other requests that are traced. */
    share: sampler.endsWith('ratio') ? ratio : Number(sampler.endsWith('on')),
    /** The operator's attributes of the service. */
    resource: { ...pairsOf(read('OTEL_RESOURCE_ATTRIBUTES')), ...(name !== '' && { 'service.name': name }) },
  }
}

function pairsOf(text: string): Record<string, string> {
  const pairs = text.matchAll(/([^=,\s]+)\s*=([^,]*)/g)
  return Object.fromEntries(Array.from(pairs, ([, name, value]) => [name!, unescape(value!.trim())]))
}

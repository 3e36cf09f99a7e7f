// Parses exact 64-bit integers: bigint in the code, JSON numbers on the wire, never a rounded double.

export const INT64_MIN = -(2n ** 63n)
export const INT64_MAX = 2n ** 63n - 1n

const MAX_DIGITS = INT64_MAX.toString().length

export function isInt64(value: bigint): boolean {
  return value >= INT64_MIN && value <= INT64_MAX
}

export const int64Schema = { type: 'integer', format: 'int64' } as const

/** Parses canonical decimal digits, so that an animal has one address; returns undefined for any other text. */
export function int64FromText(text: string): bigint | undefined {
  if (!/^(?:0|-?[1-9][0-9]{0,18})$/.test(text)) return undefined
  const value = BigInt(text)
  return isInt64(value) ? value : undefined
}

/**
 * Parses an int64 from the source text of a JSON number. `1.0` and `1e2` are integers too. Returns undefined for a number
 * that is not an int64. Checks the number of digits before it makes a BigInt: `1e999999999` costs nothing, and a long number
 * takes linear time.
 */
export function int64FromJsonNumber(source: string): bigint | undefined {
  const parts = /^(-?)([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?$/.exec(source)
  if (parts === null) return undefined
  const [, sign, whole = '', fraction = '', exponent = '0'] = parts
  const digits = (whole + fraction).replace(/^0+/, '')
  const significant = withoutTrailingZeros(digits)
  if (significant === '') return 0n
  const trailingZeros = Number(exponent) - fraction.length + (digits.length - significant.length)
  if (trailingZeros < 0 || significant.length + trailingZeros > MAX_DIGITS) return undefined
  const value = BigInt(sign + significant + '0'.repeat(trailingZeros))
  return isInt64(value) ? value : undefined
}

/** Uses a loop, because the pattern /0+$/ takes quadratic time in a run of zeros. */
function withoutTrailingZeros(digits: string): string {
  let length = digits.length
  while (length > 0 && digits[length - 1] === '0') length -= 1
  return digits.slice(0, length)
}

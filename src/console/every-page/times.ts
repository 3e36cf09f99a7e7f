// Formats times, dates and numbers for people. Times are in UTC; the foot of a page says so where no script makes them local (console.js).
import { html, type Html } from '../../http/html/html.ts'

const MINUTE_MS = 60_000
export const HOUR_MS = 60 * MINUTE_MS
export const DAY_MS = 24 * HOUR_MS

// Written out, because loading Intl would take more time at each start than the whole console.
const MONTHS = 'January February March April May June July August September October November December'.split(' ')

/** 5 December 2030 */
export function longDay(time: number): string {
  const date = new Date(time)
  return `${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]} ${date.getUTCFullYear()}`
}

/** 5 Dec */
export function shortDay(time: number): string {
  const date = new Date(time)
  return `${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]!.slice(0, 3)}`
}

/** 14:00 */
export function clockTime(time: number): string {
  return new Date(time).toISOString().slice(11, 16)
}

/** 5 Dec 2030, 14:00 */
function exactTime(time: number): string {
  return `${shortDay(time)} ${new Date(time).getUTCFullYear()}, ${clockTime(time)}`
}

export function day(time: number): Html {
  return timeElement(time, longDay(time))
}

/** The same, of the browser's time zone. */
export function localDay(time: number): Html {
  return timeElement(time, longDay(time), html`data-local="day"`)
}

export function minute(time: number): Html {
  return timeElement(time, exactTime(time), html`data-local`)
}

/** 1,240 */
export function count(value: number): string {
  return String(value).replaceAll(/\B(?=(?:\d{3})+$)/g, ',')
}

/** "1 call", "3 calls" */
export function counted(value: number, one: string): string {
  return `${count(value)} ${one}${value === 1 ? '' : 's'}`
}

/** With `data-local`, console.js shows the time relative and local. */
function timeElement(time: number, text: string, local?: Html): Html {
  return html`<time datetime="${new Date(time).toISOString()}" title="${exactTime(time)} UTC" ${local}>${text}</time>`
}

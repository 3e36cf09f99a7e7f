// Formats times, dates and numbers for people. Times are in UTC; the foot of a page says so where no script makes them local (console.js).
import { longDate } from '../../contract/operations.ts'
import { html, type Html } from '../../http/html/html.ts'

const MINUTE_MS = 60_000
export const HOUR_MS = 60 * MINUTE_MS
export const DAY_MS = 24 * HOUR_MS

/** 5 Dec */
export function shortDay(time: number): string {
  const [date, month = ''] = longDate(time).split(' ')
  return `${date} ${month.slice(0, 3)}`
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
  return timeElement(time, longDate(time))
}

/** The same, of the browser's time zone. */
export function localDay(time: number): Html {
  return timeElement(time, longDate(time), html`data-local="day"`)
}

/** 14:00 */
export function clock(time: number): Html {
  return timeElement(time, clockTime(time), html`data-local="clock"`)
}

/** Names a day: Today, Yesterday, or 5 December 2030. */
export function dayName(time: number, now: number): string {
  const name = longDate(time)
  if (name === longDate(now)) return 'Today'
  return name === longDate(now - DAY_MS) ? 'Yesterday' : name
}

export function minute(time: number): Html {
  return timeElement(time, exactTime(time), html`data-local`)
}

/** 5 Dec 2030, or 14:00 on the day of `now`; short also as HTML, since a list has two in each row. */
export function shortTime(time: number, now: number): Html {
  const isToday = Math.floor(time / DAY_MS) === Math.floor(now / DAY_MS)
  const text = isToday ? clockTime(time) : exactTime(time).split(',', 1)[0]!
  return html`<time datetime="${new Date(time).toISOString().slice(0, 16)}Z" data-local="short">${text}</time>`
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

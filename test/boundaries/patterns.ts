/** Patterns and lines that meet often: few letters, all kinds of syntax. The same seed makes the same ones. */

export type Roll = (sides: number) => number;

export function createDice(seed: number): Roll {
  let state = seed;
  return (sides) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * sides);
  };
}

export function madeText(roll: Roll): string {
  return Array.from({ length: 10 + roll(20) }, () => LETTERS[roll(LETTERS.length)]).join("");
}

export function madePattern(roll: Roll, depth = 2): string {
  const atom = () => {
    const kind = roll(depth > 0 ? 14 : 11);
    if (kind < 7) return escape(LETTERS[roll(LETTERS.length)]!);
    if (kind < 11) return GAPS[roll(GAPS.length)]!;
    const group = roll(GROUPS.length);
    const quantifier = group < 2 ? QUANTIFIERS[roll(QUANTIFIERS.length)]! : "";
    return `${GROUPS[group]}${madePattern(roll, depth - 1)})${quantifier}`;
  };
  const atoms = Array.from({ length: 1 + roll(4) }, atom).join("");
  return roll(5) === 0 ? `${atoms}|${atom()}${atom()}` : atoms;
}

const LETTERS = [...Array.from("aaaaabbbbbAAkks1 .-{]éÉſ\u212a\t"), "\ud83d\ude00"];
const GAPS = [
  "a+",
  "b*",
  "a?",
  "b{2}",
  "a{0,2}",
  "[ab]",
  "[^a]",
  "[a-z.]+",
  ".",
  ".*",
  "\\d",
  "\\w+?",
  "\\s",
  "\\b",
  "\\W",
];
const GROUPS = ["(", "(?:", "(?=", "(?!", "(?<="];
/** None without an end: a repetition of repetitions would take for ever. */
const QUANTIFIERS = ["", "", "?", "{1,2}", "{0,2}"];

function escape(letter: string): string {
  return /[.{\]-]/.test(letter) ? `\\${letter}` : letter;
}

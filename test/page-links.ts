/** The words of a page, and the files that it leads to. */
import { readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";

/** What a reader sees as text: without blocks of code, and without what stands in backticks. */
export function wordsOf(page: string): string {
  const lines = readFileSync(page, "utf8").split("\n");
  let fence: string | null = null;
  const words = lines.filter((line) => {
    const mark = /^ {0,3}(`{3,}|~{3,})/.exec(line)?.[1];
    if (fence === null && mark !== undefined) fence = mark;
    else if (fence !== null && mark?.startsWith(fence) === true && line.trim() === mark) {
      fence = null;
      return false;
    }
    return fence === null;
  });
  return words.join("\n");
}

export type PageLink = {
  readonly link: string;
  /** The full path of the file. */
  readonly target: string;
  readonly anchor: string | undefined;
  /** Of a picture: where it is missing, its reader sees this text in its place. */
  readonly alt: string;
};

/** Those to files: not the ones to other sites. */
export function linksOf(page: string): {
  readonly links: readonly PageLink[];
  readonly pictures: readonly PageLink[];
} {
  const text = wordsOf(page).replaceAll(/`[^`\n]*`/g, "``");
  const found = (link: string, alt: string): PageLink => {
    const [path = "", anchor] = link.split("#");
    return { link, target: path === "" ? page : resolve(dirname(page), path), anchor, alt };
  };
  const isFile = (link: string) => link !== "" && !/^[a-z]+:/i.test(link);
  const links = [...text.matchAll(/(?<!!\[[^\]]*)\]\(([^()\s]+)\)/g)].map(([, link = ""]) => link);
  const pictures = [
    ...[...text.matchAll(/!\[([^\]]*)\]\(([^()\s]+)\)/g)].map(([, alt = "", link = ""]) => ({ link, alt })),
    ...[...text.matchAll(/<img [^>]*>/g)].map(([tag]) => ({
      link: /\bsrc="([^"]+)"/.exec(tag)?.[1] ?? "",
      alt: /\balt="([^"]+)"/.exec(tag)?.[1] ?? "",
    })),
  ];
  return {
    links: links.filter(isFile).map((link) => found(link, "")),
    pictures: pictures.filter(({ link }) => isFile(link)).map(({ link, alt }) => found(link, alt)),
  };
}

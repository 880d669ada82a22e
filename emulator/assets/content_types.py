"""Content types by the ends of file names, as wrangler uploads them.

They are those of the npm package `mime` 4, for what is found on web sites; Python's own table
differs between its versions, and between machines.
"""

from __future__ import annotations

from typing import Final

_BY_TYPE: Final = """
text/html html htm shtml
text/css css
text/javascript js mjs
text/plain txt text log conf ini
text/markdown md markdown
text/mdx mdx
text/csv csv
text/tab-separated-values tsv
text/yaml yaml yml
text/vtt vtt
text/calendar ics
text/x-vcard vcf
text/jsx jsx
text/less less
text/x-scss scss
text/x-sass sass
text/cache-manifest appcache manifest
application/xhtml+xml xhtml
application/node cjs
application/json json map
application/json5 json5
application/ld+json jsonld
application/geo+json geojson
application/manifest+json webmanifest
application/wasm wasm
application/xml xml xsl xsd
application/rss+xml rss
application/atom+xml atom
application/rdf+xml rdf
application/gpx+xml gpx
application/vnd.google-earth.kml+xml kml
application/toml toml
application/sql sql
application/x-sh sh
application/pdf pdf
application/rtf rtf
application/postscript ps eps ai
application/epub+zip epub
application/zip zip
application/gzip gz
application/x-tar tar
application/x-bzip2 bz2
application/x-7z-compressed 7z
application/vnd.rar rar
application/java-archive jar
application/vnd.android.package-archive apk
application/octet-stream bin exe dmg iso deb
application/x-x509-ca-cert pem crt der
application/vnd.ms-fontobject eot
application/vnd.apple.mpegurl m3u8
application/msword doc
application/vnd.openxmlformats-officedocument.wordprocessingml.document docx
application/vnd.ms-excel xls
application/vnd.openxmlformats-officedocument.spreadsheetml.sheet xlsx
application/vnd.ms-powerpoint ppt
application/vnd.openxmlformats-officedocument.presentationml.presentation pptx
application/vnd.oasis.opendocument.text odt
application/vnd.oasis.opendocument.spreadsheet ods
application/ogg ogx
application/x-subrip srt
image/svg+xml svg svgz
image/png png
image/apng apng
image/jpeg jpg jpeg jpe
image/gif gif
image/webp webp
image/avif avif
image/vnd.microsoft.icon ico
image/bmp bmp
image/tiff tif tiff
image/heic heic
image/heif heif
image/jxl jxl
image/vnd.adobe.photoshop psd
font/woff woff
font/woff2 woff2
font/ttf ttf
font/otf otf
audio/mpeg mp3
audio/wav wav
audio/ogg ogg oga opus
audio/mp4 m4a
audio/aac aac
audio/x-flac flac
audio/webm weba
video/mp4 mp4
video/x-m4v m4v
video/webm webm
video/ogg ogv
video/quicktime mov
video/x-msvideo avi
video/x-matroska mkv
video/mpeg mpeg mpg
video/3gpp 3gpp 3gp
video/mp2t ts mts
model/gltf-binary glb
model/gltf+json gltf
model/obj obj
model/stl stl
model/vnd.usdz+zip usdz
"""
_TYPES: Final = {
    end: kind for kind, *ends in map(str.split, _BY_TYPE.strip().splitlines()) for end in ends
}


def content_type(name: str) -> str | None:
    """Return the type of a file, None where its name does not tell.

    >>> content_type("/css/site.CSS")
    'text/css; charset=utf-8'
    """
    last = name.rpartition("/")[2].lower()
    _, dot, end = last.rpartition(".")
    # A name without a dot is an end itself, as `mime` has it.
    kind = _TYPES.get(end if dot else last)
    if kind is not None and kind.startswith("text/"):
        return f"{kind}; charset=utf-8"
    return kind

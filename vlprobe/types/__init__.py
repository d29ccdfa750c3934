"""vlprobe's core types and the interfaces between its packages. The only other vlprobe module imported here is
`errors`.
"""

from vlprobe.types.nouns import AS_PAPER as AS_PAPER
from vlprobe.types.nouns import AVERAGINGS as AVERAGINGS
from vlprobe.types.nouns import POOLED as POOLED
from vlprobe.types.nouns import Case as Case
from vlprobe.types.nouns import Edit as Edit
from vlprobe.types.nouns import Estimate as Estimate
from vlprobe.types.nouns import Item as Item
from vlprobe.types.nouns import Measure as Measure
from vlprobe.types.nouns import Metric as Metric
from vlprobe.types.nouns import Picture as Picture
from vlprobe.types.nouns import PictureChange as PictureChange
from vlprobe.types.nouns import PictureEdit as PictureEdit
from vlprobe.types.nouns import Publication as Publication
from vlprobe.types.nouns import Role as Role
from vlprobe.types.nouns import Run as Run
from vlprobe.types.nouns import Series as Series
from vlprobe.types.nouns import zero_margin as zero_margin
from vlprobe.types.options import Option as Option
from vlprobe.types.protocols import Capabilities as Capabilities
from vlprobe.types.protocols import CaseAnswerer as CaseAnswerer
from vlprobe.types.protocols import Dataset as Dataset
from vlprobe.types.protocols import DualEncoder as DualEncoder
from vlprobe.types.protocols import Encoder as Encoder
from vlprobe.types.protocols import Inputs as Inputs
from vlprobe.types.protocols import Lookup as Lookup
from vlprobe.types.protocols import Model as Model
from vlprobe.types.protocols import PairScorer as PairScorer
from vlprobe.types.protocols import Probe as Probe
from vlprobe.types.protocols import Reader as Reader
from vlprobe.types.protocols import ScoreType as ScoreType
from vlprobe.types.protocols import SideBySideMatcher as SideBySideMatcher
from vlprobe.types.protocols import TextEncoder as TextEncoder
from vlprobe.types.protocols import answers_cases as answers_cases
from vlprobe.types.protocols import embeds_images as embeds_images
from vlprobe.types.protocols import embeds_texts as embeds_texts
from vlprobe.types.protocols import looks_up as looks_up
from vlprobe.types.protocols import matches_side_by_side as matches_side_by_side
from vlprobe.types.protocols import scores_pairs as scores_pairs
